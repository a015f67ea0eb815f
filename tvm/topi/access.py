"""In what order injective operations read memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr

from .utils import dims, extents_of, prod, ravel_index, simplify


def axis_read_in_order(out: te.Tensor) -> int | None:
    """The axis along which the largest input is read element by element, where it is not the last.

    None if the last axis is such an axis, or leaves the position unchanged, or none is.
    """
    shape = dims(out.shape)
    if len(shape) < 2 or not all(isinstance(d, int) and d > 0 for d in shape):
        return None
    start = _position(out, [0] * len(shape))
    if start is None:
        return None
    last = len(shape) - 1
    if shape[last] == 1 or _step(out, last, start) in (None, 0, 1):
        return None
    found = [axis for axis in range(last) if shape[axis] > 3 and _step(out, axis, start) == 1]
    return found[-1] if found else None


def steps_of_axes(out: te.Tensor, counts: Sequence[int]) -> list[int]:
    """How far the position read in the largest input moves with so many steps along each axis."""
    shape = dims(out.shape)
    start = _position(out, [0] * len(shape))
    found = []
    for axis, count in enumerate(counts):
        position = _position(out, [count * int(i == axis) for i in range(len(shape))])
        found.append(0 if position is None or start is None else abs(position - start))
    return found


def period_of_last_axis(out: te.Tensor) -> int | None:
    """The length of the runs in which reads along the last axis begin anew; None if they do not.

    Each run of a repeated row is read in order, while a vector across its end is not.
    """
    shape = dims(out.shape)
    last = out.op.axis[-1].var
    found: list[int] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.FloorMod) and node.a is last and isinstance(node.b, tir.IntImm):
            found.append(int(node.b.value))

    for load in _loads(out.op) if isinstance(out.op, te.tensor.ComputeOp) else ():
        for index in load.indices:
            tir.stmt_functor.post_order_visit(index, visit)
    divides = isinstance(shape[-1], int) and found and shape[-1] % min(found) == 0
    return min(found) if divides else None


def are_read_as_one(op: te.tensor.ComputeOp, axes: Sequence[tir.IterVar]) -> bool:
    """Whether loops in one another step through all they read as a single loop would.

    Looks through operations that are computed where they are read.
    """
    extents = extents_of(axes)
    steps = [axis.var for axis in axes]
    return all(_is_run(load, indices, steps, extents) for load, indices in indexed_reads(op))


def reads_neighbours(op: te.tensor.ComputeOp, reach: int = 1) -> bool:
    """Whether neighbours along the last axis read neighbours, or what lies within a reach, if they do."""
    last = op.axis[-1].var

    def step(index: Any) -> Any:
        moved = [_bound(index, {last: tir.const(at, last.dtype)}) for at in (0, 1)]
        return simplify(moved[1] - moved[0])

    steps = [dims((step(indices[-1]),))[0] for _, indices in indexed_reads(op) if indices]
    return all(isinstance(step, int) and 0 <= step <= reach for step in steps)


def indexed_reads(op: te.tensor.ComputeOp) -> list[tuple[Any, list[Any]]]:
    """The reads of tensors, as nodes, and their indices in simple form."""
    ones = {axis.var: tir.const(0, axis.var.dtype) for axis in op.axis if _is_single(axis)}
    return [(x, [simplify(_bound(index, ones)) for index in x.indices]) for x in _loads(op)]


def _is_single(axis: tir.IterVar) -> bool:
    return extents_of((axis,)) == (1,)


def _is_run(
    load: Any, indices: Sequence[Any], steps: Sequence[tir.Var], extents: Sequence[Any]
) -> bool:
    """Whether a read uses no step, or the steps are its last indices and span its last axes."""
    count, producer = len(steps), load.producer
    uses = [
        any(any(var is step for step in steps) for var in _variables(index)) for index in indices
    ]
    if not any(uses):
        return True
    is_last = len(indices) >= count and not any(uses[:-count])
    if not is_last or any(a is not b for a, b in zip(indices[-count:], steps, strict=True)):
        return False
    if dims(producer.shape)[len(indices) - count + 1 :] != tuple(extents[1:]):
        return False
    above = producer.op
    return not isinstance(above, te.tensor.ComputeOp) or (
        not above.reduce_axis and are_read_as_one(above, above.axis[-count:])
    )


def _variables(index: Any) -> list[tir.Var]:
    return tir.stmt_functor.free_vars(index) if isinstance(index, PrimExpr) else []


def _step(out: te.Tensor, axis: int, start: int) -> int | None:
    """How far the position read moves with one step along an axis."""
    at = [int(i == axis) for i in range(len(out.shape))]
    position = _position(out, at)
    return None if position is None else position - start


def _position(tensor: te.Tensor, at: Sequence[int]) -> int | None:
    """Where an element comes from in the largest input."""
    indices: Sequence[Any] = at
    analyzer = Analyzer()
    while isinstance(tensor.op, te.tensor.ComputeOp):
        load = _largest_load(tensor.op)
        if load is None:
            return None
        binds = {
            axis.var: tir.const(int(i), axis.var.dtype)
            for axis, i in zip(tensor.op.axis, indices, strict=True)
        }
        indices = dims([analyzer.simplify(_bound(index, binds)) for index in load.indices])
        if not _are_known(indices):
            return None
        tensor = load.producer
    shape = dims(tensor.shape)
    if not isinstance(tensor.op, te.tensor.PlaceholderOp) or not _are_known(shape):
        return None
    return int(ravel_index(indices, shape))


def _bound(index: Any, binds: dict[tir.Var, Any]) -> Any:
    return tir.stmt_functor.substitute(index, binds) if isinstance(index, PrimExpr) else index


def _are_known(shape: Sequence[Any]) -> bool:
    return all(isinstance(d, int) for d in shape)


def _largest_load(op: te.tensor.ComputeOp) -> Any:
    """The read of the largest tensor of known shape, as a node; None without one."""
    known = [load for load in _loads(op) if _are_known(dims(load.producer.shape))]
    return max(known, key=lambda load: prod(dims(load.producer.shape)), default=None)


def _loads(op: te.tensor.ComputeOp) -> list[Any]:
    """The reads of tensors, as nodes."""
    loads: list[Any] = []

    def visit(node: object) -> None:
        if isinstance(node, tir.ProducerLoad):
            loads.append(node)

    for body in op.body:
        tir.stmt_functor.post_order_visit(body, visit)
    return loads
