"""Targets that are files of other programs."""
