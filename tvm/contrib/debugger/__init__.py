"""Executors that show what happens inside."""
