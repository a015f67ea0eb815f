"""TVMScript to nodes."""

from .entry import from_source, ir_module, parse, prim_func

__all__ = ["from_source", "ir_module", "parse", "prim_func"]
