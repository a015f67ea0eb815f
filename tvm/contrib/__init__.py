"""Executors, tool chains and helpers around the compiler."""
