"""Measurements beside peers; run them as ``python -m benchmarks.<name>``."""
