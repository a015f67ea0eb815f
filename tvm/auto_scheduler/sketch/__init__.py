"""Sketches: the structures of loops that a search fills in."""
