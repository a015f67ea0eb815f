"""Regions of real numbers between dequantize and quantize."""

from __future__ import annotations

from collections.abc import Callable

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem
from tvm.relay.function import relay_functions
from tvm.relay.traverse import is_call_of, operands, post_order

BEGIN, END = "qnn.dequantize", "qnn.quantize"


def quantized_region(
    end: Call, accepts: Callable[[Op], bool] = lambda op: True
) -> list[RelayExpr] | None:
    """What a quantize depends on down to the dequantize calls, operands first.

    None if it depends on anything else, on an operator that is not accepted or on constants alone.
    """
    found: list[RelayExpr] = []
    seen: set[int] = set()
    stack: list[tuple[RelayExpr, bool]] = [(end, False)]
    has_begin = False
    while stack:
        node, is_expanded = stack.pop()
        if is_expanded:
            found.append(node)
            continue
        if id(node) in seen:
            continue
        seen.add(id(node))
        if not _belongs(node, accepts):
            return None
        has_begin |= is_call_of(node, BEGIN)
        stack.append((node, True))
        stack.extend([(o, False) for o in reversed(_values_below(node))])
    return found if has_begin else None


def _belongs(node: RelayExpr, accepts: Callable[[Op], bool]) -> bool:
    if isinstance(node, Call):
        return isinstance(node.op, Op) and accepts(node.op)
    return isinstance(node, (Tuple, TupleGetItem, Constant))


def _values_below(node: RelayExpr) -> tuple[RelayExpr, ...]:
    """The operands that belong to the region: no scales and zero points."""
    if is_call_of(node, BEGIN):
        return ()
    if is_call_of(node, END):
        return operands(node)[1:2]
    return tuple([o for o in operands(node) if not isinstance(o, Op)])


def list_fake_quantized_op_freqs(mod: IRModule) -> dict[str, int]:
    """How many calls of each operator lie between dequantize and quantize.

    Parameters
    ----------
    mod : IRModule
        A module with quantize and dequantize as an importer leaves them.
    """
    inside: dict[int, str] = {}
    for func in relay_functions(mod).values():
        for node in post_order(func):
            for part in (quantized_region(node) or ()) if is_call_of(node, END) else ():
                if isinstance(part, Call) and part.operator.name not in (BEGIN, END):
                    inside[id(part)] = part.operator.name
    counts: dict[str, int] = {}
    for name in inside.values():
        counts[name] = counts.get(name, 0) + 1
    return counts
