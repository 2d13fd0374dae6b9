"""Events of every layout in one model: readers, times, and JSON encoding with its record of losses."""
