"""Operators whose attributes are values, by the classic paths; `run_time.py` declares them."""
