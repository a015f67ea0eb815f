"""Tables of patterns by compiler, under their classic module name."""

from __future__ import annotations

from tvm.relay.op.pattern_tables import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
