"""What external compilers take: tables of patterns, and operators with the attribute `target.<name>`."""

from . import dnnl, libtorch, register
from .register import get_pattern_table, register_pattern_table

__all__ = ["dnnl", "get_pattern_table", "libtorch", "register", "register_pattern_table"]
