"""A graph of operations as text.

A = PLACEHOLDER [512, 512]
B = PLACEHOLDER [512, 512]
C(i, j) += (A[i, k]*B[k, j])
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir.expr import PrimExpr
from tvm.te.tensor import ComputeOp, Operation
from tvm.tir.expr import Add, Call, Max, Min, Mul, Reduce, Select

_WIDEST = 256


def dag_text(ops: Sequence[Operation], simple_mode: bool = False) -> str:
    """The text; the simple one has no shapes of inputs, and of calls only what is called.

    Parameters
    ----------
    ops : sequence of Operation
        The operations.
    simple_mode : bool
        Whether it is to be short, for hashes.
    """
    return "".join([_op_text(op, simple_mode) for op in ops])


def shortened(text: str) -> str:
    """The text without the middle of lines that are very long."""
    half = _WIDEST // 2
    lines = [
        f"{line[:half]} ...{line[-half:]}" if len(line) > _WIDEST else line
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def _op_text(op: Operation, simple_mode: bool) -> str:
    if not isinstance(op, ComputeOp):
        shape = "" if simple_mode else f"[{', '.join([str(d) for d in op.output(0).shape])}]\n"
        return f"{op.name} = PLACEHOLDER {shape}"
    head = f"{op.name}({', '.join([iv.var.name for iv in op.axis])})"
    many = len(op.body) > 1
    rows = [
        f"{head}{f'.v{i}' * many}{_value_text(value, i, simple_mode)}\n"
        for i, value in enumerate(op.body)
    ]
    return "".join(rows)


def _value_text(value: PrimExpr, place: int, simple_mode: bool) -> str:
    if not isinstance(value, Reduce):
        if simple_mode and isinstance(value, Call):
            return f" = {getattr(value.op, 'name', value.op)}"
        return f" = {_text(value)}"
    result = value.combiner.result[place]
    sources = ",".join([_text(source) for source in value.source])
    signs: dict[type[PrimExpr], str] = {Add: "+=", Max: "max=", Min: "min=", Mul: "*="}
    if (sign := signs.get(type(result))) is not None:
        return f" {sign} {_text(value.source[0])}"
    if isinstance(result, Select):
        parts = ", ".join(
            [_text(part) for part in (result.condition, result.true_value, result.false_value)]
        )
        return f" select({parts})= ({sources})"
    return f" reduce({_text(result)})= ({sources})"


def _text(value: PrimExpr) -> str:
    return str(value)
