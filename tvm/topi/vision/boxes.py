"""Choosing among boxes given by two opposite corners: greedily, by how much they overlap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tvm import te, tir
from tvm.ir.expr import PrimExpr
from tvm.tir.ir_builder import IRBuilder

from ..utils import cast_scalar

Corner = Callable[[int], PrimExpr]


class Binder(Protocol):
    """Gives names to values, as a builder of statements does."""

    def let(self, var_name: str, value: Any, /) -> PrimExpr: ...


class Box(NamedTuple):
    """A box's least and greatest coordinates, and its area."""

    low: tuple[PrimExpr, PrimExpr]
    high: tuple[PrimExpr, PrimExpr]
    area: PrimExpr


class Selection(NamedTuple):
    """Which boxes compete, and what makes one lose."""

    candidates: PrimExpr  # how many compete, from the best on
    most: PrimExpr  # how many may be kept, negative: all
    place: Callable[[PrimExpr], PrimExpr]  # a candidate's position among all boxes
    corner: Callable[[PrimExpr, int], PrimExpr]  # a coordinate of the box at a position
    covers: Callable[[PrimExpr, PrimExpr, PrimExpr], PrimExpr]  # (kept position, position, overlap)
    accepts: Callable[[PrimExpr], PrimExpr] = lambda at: tir.const(True)  # whether it competes
    pixel: float = 0.0  # 1 if the greatest coordinates belong to the box


def read_box(ib: Binder, corner: Corner, name: str, pixel: float = 0.0) -> Box:
    """The box whose corners are (0, 1) and (2, 3), in whatever order."""
    found = [ib.let(f"{name}{i}", corner(i)) for i in range(4)]
    low = [ib.let(f"{name}_low{i}", tir.min(found[i], found[i + 2])) for i in range(2)]
    high = [ib.let(f"{name}_high{i}", tir.max(found[i], found[i + 2]) + pixel) for i in range(2)]
    area = ib.let(f"{name}_area", (high[0] - low[0]) * (high[1] - low[1]))
    return Box((low[0], low[1]), (high[0], high[1]), area)


def overlap(a: Box, b: Box) -> PrimExpr:
    """Intersection over union; 0 for boxes without an area."""
    sides = [
        tir.max(tir.min(a.high[i], b.high[i]) - tir.max(a.low[i], b.low[i]), 0.0) for i in range(2)
    ]
    common = sides[0] * sides[1]
    union = a.area + b.area - common
    return tir.Select(
        union > 0.0,
        common / tir.Select(union > 0.0, union, tir.const(1.0, union.dtype)),
        tir.const(0.0, union.dtype),
    )


def select_boxes(
    ib: IRBuilder,
    wanted: Selection,
    kept: Callable[[PrimExpr], PrimExpr],
    keep: Callable[[PrimExpr, PrimExpr], None],
) -> PrimExpr:
    """Keep each candidate that none of those kept before covers; gives their number.

    `keep(n, position)` stores the n-th one, `kept(n)` reads it back: each is compared with kept ones
    only, so that memory stays linear and the time is that of candidates times kept boxes.
    """
    count = ib.allocate("int32", 1, "count", scope="local")
    is_free = ib.allocate("int32", 1, "is_free", scope="local")
    rival = ib.allocate("int32", 1, "rival", scope="local")
    count[0] = 0
    with ib.for_range(0, wanted.candidates, "j") as j:
        at = ib.let("place", wanted.place(j).astype("int32"))
        below_limit = tir.any(wanted.most < 0, count[0] < wanted.most)
        with ib.if_scope(tir.all(below_limit, wanted.accepts(at))):
            box = read_box(ib, lambda i: wanted.corner(at, i), "box", wanted.pixel)
            is_free[0] = 1
            rival[0] = 0
            with ib.while_loop(tir.all(rival[0] < count[0], is_free[0] > 0)):
                other = ib.let("other", kept(rival[0]))
                theirs = read_box(ib, lambda i: wanted.corner(other, i), "other", wanted.pixel)
                with ib.if_scope(wanted.covers(other, at, overlap(box, theirs))):
                    is_free[0] = 0
                rival[0] = rival[0] + 1
            with ib.if_scope(is_free[0] > 0):
                keep(count[0], at)
                count[0] = count[0] + 1
    return count[0]


def scalar_inputs(
    values: Sequence[Any], dtypes: Sequence[str]
) -> tuple[list[te.Tensor], Callable[[Sequence[tir.Buffer]], list[PrimExpr]]]:
    """Numbers that may be tensors of one element: the tensors, and how to read all of them."""
    tensors = [value for value in values if isinstance(value, te.Tensor)]

    def read(buffers: Sequence[tir.Buffer]) -> list[PrimExpr]:
        rest = iter(buffers)
        found = []
        for value, dtype in zip(values, dtypes, strict=True):
            if isinstance(value, te.Tensor):
                buffer = next(rest)
                value = tir.BufferLoad(buffer, (tir.const(0, "int32"),) * len(buffer.shape))
            found.append(cast_scalar(value, dtype))
        return found

    return tensors, read
