"""The rules by family; importing a module here registers its rules, one line a module."""
