"""What a store is: layouts as data, the verdict on a store, its differences to what a layout declares."""
