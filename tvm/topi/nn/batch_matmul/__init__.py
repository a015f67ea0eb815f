"""Batched matrix products."""
