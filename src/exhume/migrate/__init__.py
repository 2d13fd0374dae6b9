"""Moves stores from layout to layout, verified, and compares them."""
