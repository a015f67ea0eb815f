"""Which nodes of an imported model a kernel computes, for the reports of profilers."""

from __future__ import annotations

from tvm.ir.span import Span
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.traverse import post_order


def source_names(func: Function) -> str:
    """The nodes' names, separated by commas; empty if they are not known."""
    spans = [node.span for node in post_order(func.body) if isinstance(node, Call)]
    return ", ".join(
        dict.fromkeys([span.source_name.name for span in spans if isinstance(span, Span)])
    )
