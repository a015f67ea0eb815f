"""What external compilers take: tables of patterns, and operators with the attribute `target.<name>`."""

from .register import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
