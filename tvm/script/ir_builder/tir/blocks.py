"""Blocks: their axes, regions and annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.expr import IterVar, Range, Var, as_expr
from tvm.tir.linear import difference
from tvm.tir.stmt import BufferRegion

from .buffers import as_region
from .frame import BlockFrame, BlockInitFrame, innermost, loop_range


def block(name: str = "", no_realize: bool = False) -> BlockFrame:
    """A unit of scheduling."""
    return BlockFrame(name, no_realize)


def init() -> BlockInitFrame:
    """What runs before the first iteration of the block's reduction."""
    return BlockInitFrame()


def _block(what: str, known: str | None = None) -> BlockFrame:
    """The block around, in which a part may not be given yet."""
    frame = innermost(BlockFrame, what, "T.block")
    if known is not None and (given := getattr(frame, known)) is not None:
        raise ValueError(f"a block requires at most one {what}, the first one says {given}")
    return frame


def where(predicate: Any) -> None:
    """The condition under which the block runs."""
    if isinstance(predicate, int):
        predicate = bool(predicate)
    _block("T.where", "predicate").predicate = as_expr(predicate)


def _regions(values: tuple[Any, ...]) -> list[BufferRegion]:
    if len(values) == 1 and isinstance(values[0], (list, tuple)):
        values = tuple(values[0])
    return [as_region(value) for value in values]


def reads(*buffer_slices: Any) -> None:
    """What the block reads."""
    _block("T.reads", "reads").reads = _regions(buffer_slices)


def writes(*buffer_slices: Any) -> None:
    """What the block writes."""
    _block("T.writes", "writes").writes = _regions(buffer_slices)


def block_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of the block."""
    _block("T.block_attr", "annotations").annotations = dict(attrs)


_AXES = {"S": IterVar.DataPar, "R": IterVar.CommReduce}


class axis:
    """The iteration variables of a block."""

    @staticmethod
    def _new(dom: Any, binding: Any, kind: Any, dtype: str) -> Var:
        frame = _block("T.axis")
        if isinstance(dom, Range):
            interval = dom
        elif isinstance(dom, (tuple, list)):
            low, high = op.unify(*dom)
            interval = Range.from_min_extent(low, difference(high, low))
        else:
            interval = Range(as_expr(dom, as_dtype(dtype)) if type(dom) is int else as_expr(dom))
        var = Var("", interval.extent.dtype)
        if not var.dtype.is_int and not var.dtype.is_uint:
            raise TypeError(f"T.axis requires a range of integers, got {interval.extent}")
        frame.iter_vars.append(IterVar(interval, var, kind))
        if binding is not None:
            frame.iter_values.append(as_expr(binding, var.dtype))
        elif not frame.no_realize:
            raise ValueError("T.axis requires a value for its variable, got none")
        return var

    @staticmethod
    def spatial(dom: Any, binding: Any = None, dtype: str = "int32") -> Var:
        """A variable whose iterations are independent."""
        return axis._new(dom, binding, IterVar.DataPar, dtype)

    S = spatial

    @staticmethod
    def reduce(dom: Any, binding: Any = None, dtype: str = "int32") -> Var:
        """A variable that is reduced over."""
        return axis._new(dom, binding, IterVar.CommReduce, dtype)

    R = reduce

    @staticmethod
    def scan(dom: Any, binding: Any = None, dtype: str = "int32") -> Var:
        """A variable whose iterations are ordered."""
        return axis._new(dom, binding, IterVar.Ordered, dtype)

    @staticmethod
    def opaque(dom: Any, binding: Any = None, dtype: str = "int32") -> Var:
        """A variable of which nothing is known."""
        return axis._new(dom, binding, IterVar.Opaque, dtype)

    @staticmethod
    def remap(kinds: str, bindings: Sequence[Any], dtype: str = "int32") -> Any:
        """Variables over the ranges of loops: ``"SSR"`` and the loops' variables."""
        if len(kinds) != len(bindings):
            raise ValueError(f"T.axis.remap requires {len(kinds)} loops, got {len(bindings)}")
        variables = []
        for letter, loop_var in zip(kinds, bindings, strict=True):
            if letter not in _AXES:
                raise ValueError(f"T.axis.remap requires letters of 'S' and 'R', got {letter!r}")
            dom = loop_range(loop_var)
            if dom is None:
                raise ValueError(f"T.axis.remap requires variables of loops, got {loop_var}")
            variables.append(axis._new(dom, loop_var, _AXES[letter], dtype))
        return variables if len(variables) > 1 else variables[0]
