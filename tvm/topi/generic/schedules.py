"""Loops in order; what is injective is inlined."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import te

from ..tag import is_injective
from ..utils import operations_above


def as_outputs(outs: te.Tensor | Sequence[te.Tensor]) -> list[te.Tensor]:
    """The output tensors as a list."""
    return [outs] if isinstance(outs, te.Tensor) else list(outs)


def open_schedule(
    outs: te.Tensor | Sequence[te.Tensor],
) -> tuple[te.Schedule, te.Tensor, list[te.tensor.Operation]]:
    """A schedule of the outputs, the first of them, and the operations that this one needs."""
    outputs = as_outputs(outs)
    return te.create_schedule([x.op for x in outputs]), outputs[0], operations_above(outputs[0].op)


def default_schedule(outs: te.Tensor | Sequence[te.Tensor], auto_inline: bool) -> te.Schedule:
    """Loops in order; with `auto_inline`, injective operations are inlined."""
    outputs = as_outputs(outs)
    s = te.create_schedule([x.op for x in outputs])
    if auto_inline:
        inline_injective(s, outputs)
    return s


def inline_injective(
    s: te.Schedule, outputs: Sequence[te.Tensor], kept: Sequence[te.tensor.Operation] = ()
) -> None:
    """Inline every injective operation that is not an output, nor kept, and that computes alone read."""
    above = [op for x in outputs for op in operations_above(x.op)]
    in_memory = {id(op) for op in [*[x.op for x in outputs], *kept]}
    for op in above:
        if not isinstance(op, te.tensor.ComputeOp):
            in_memory.update([id(x.op) for x in op.input_tensors])
    for op in above:
        if is_injective(op.tag) and id(op) not in in_memory:
            s[op].compute_inline()


def schedule_injective_from_existing(sch: te.Schedule, out: te.Tensor) -> te.Schedule:
    """Fuse all the loops of an output."""
    if len(out.op.axis) > 1:
        sch[out].fuse(*sch[out].op.axis)
    return sch


def schedule_injective(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Inline all above the outputs."""
    return default_schedule(outs, True)


def schedule_extern(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Leave calls of other code as they are."""
    return default_schedule(outs, False)
