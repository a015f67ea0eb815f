"""Which nodes of an imported model a kernel computes, for the reports of profilers."""

from __future__ import annotations

from tvm.ir.span import SequentialSpan, Span
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.traverse import post_order


def source_names(call: Call, func: Function) -> str:
    """The names of the nodes that a call of `func` computes, separated by commas; empty if unknown."""
    return ", ".join(dict.fromkeys([span.source_name.name for span in computed_spans(call, func)]))


def computed_spans(call: Call, func: Function) -> list[Span]:
    """What a call of a kernel was made from; kernels that are shared have the places of one call."""
    own: object = call.span
    if isinstance(own, SequentialSpan):
        return list(own.spans)
    spans = [node.span for node in post_order(func.body) if isinstance(node, Call)]
    return [span for span in spans if isinstance(span, Span)]
