"""Pickles as data: an interpreter that builds inert nodes, what may be named, and what values become."""
