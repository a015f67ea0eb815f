"""Operators that join and part tensors: concatenate, stack, split, repeat, tile."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, TupleGetItem, TupleWrapper, fields_of

from .attributes import as_ints, as_tuple
from .computes import computed_by
from .known_shapes import known_shape
from .layout import layout_concatenate
from .layout_axes import layout_split
from .operator import Attribute, Expr, Ints, Operand, operator
from .registry import OpPattern, ops
from .run_time_shapes import TILE
from .types import (
    Dim,
    TensorTypes,
    apply,
    expect,
    expect_same_dtype,
    expect_tuple,
    may_equal,
    positive_axis,
    refine,
    shape_of_type,
    show,
    tensor,
)


def _joined(tensors: Any) -> RelayExpr:
    if isinstance(tensors, (list, tuple)) and not tensors:
        raise ValueError("concatenate, stack and meshgrid require at least one tensor")
    return as_tuple(tensors)


Joined = Annotated[Any, Operand(_joined)]


def _concatenate_type(attrs: Any, data: TensorTypes) -> Type:
    """A tensor of the operands' dtype and shape; along the axis it has the sum of their extents."""
    expect(len(data) > 0, "concatenate requires at least one tensor")
    dtype = expect_same_dtype(data, "concatenate")
    out = list(shape_of_type(data[0]))
    axis = positive_axis(attrs.axis, len(out), "concatenate")
    for field in data[1:]:
        shape = shape_of_type(field)
        expect(
            len(shape) == len(out)
            and all(i == axis or may_equal(shape[i], out[i]) for i in range(len(out))),
            f"concatenate along axis {axis} requires equal other dimensions, "
            f"got {show(shape_of_type(data[0]))} and {show(shape)}",
        )
        for i, extent in enumerate(shape):
            out[i] = _added(out[i], extent) if i == axis else refine(out[i], extent)
    return tensor(out, dtype)


def _added(a: Dim, b: Dim) -> Dim:
    return apply(lambda x, y: x + y, a, b)


def _concatenate_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    axis = call.attrs.axis
    extents = [t.concrete_shape[axis] for t in call.args[0].checked_type.fields]
    return [ops.split(grad, indices_or_sections=tuple(np.cumsum(extents)[:-1].tolist()), axis=axis)]


@operator(
    "concatenate",
    support_level=1,
    defaults={"axis": 0},
    infer_type=_concatenate_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.concatenate(inputs, attrs.axis)],
    schedules={
        "generic": lambda attrs, outs, target: topi.generic.schedule_injective(outs),
        "cpu": lambda attrs, outs, target: topi.x86.schedule_concatenate(outs),
    },
    fold=lambda attrs, arrays, out_type: [np.concatenate(list(arrays), axis=attrs.axis)],
    infer_layout=layout_concatenate,
    gradient=_concatenate_gradient,
)
def concatenate(data: Joined, axis: int) -> RelayExpr:
    """Join tensors along an axis.

    Parameters
    ----------
    data : relay.Expr or sequence of relay.Expr
        The tensors, or a tuple of them.
    """


def _stack_type(attrs: Any, data: TensorTypes) -> Type:
    """A tensor of the operands' dtype: their shape with an axis more, an element for each of them."""
    expect(len(data) > 0, "stack requires at least one tensor")
    dtype = expect_same_dtype(data, "stack")
    shape = list(shape_of_type(data[0]))
    for field in data[1:]:
        other = shape_of_type(field)
        expect(
            len(other) == len(shape)
            and all(may_equal(a, b) for a, b in zip(other, shape, strict=True)),
            f"stack requires tensors of one shape, got {show(shape)} and {show(other)}",
        )
        shape = [refine(a, b) for a, b in zip(shape, other, strict=True)]
    axis = positive_axis(attrs.axis, len(shape) + 1, "stack")
    return tensor([*shape[:axis], len(data), *shape[axis:]], dtype)


def _stack_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    count = len(expect_tuple(infer_type_of(call.args[0]), "stack"))
    parts = ops.split(grad, indices_or_sections=count, axis=call.attrs.axis)
    axis = (call.attrs.axis,)
    return [Tuple([ops.squeeze(TupleGetItem(parts, i), axis=axis) for i in range(count)])]


@operator(
    "stack",
    support_level=3,
    defaults={"axis": 0},
    infer_type=_stack_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.stack(inputs, attrs.axis)],
    fold=lambda attrs, arrays, out_type: [np.stack(list(arrays), axis=attrs.axis)],
    gradient=_stack_gradient,
)
def stack(data: Joined, axis: int) -> RelayExpr:
    """Join tensors of one shape along a new axis.

    Parameters
    ----------
    data : relay.Expr or sequence of relay.Expr
        The tensors, or a tuple of them.
    axis : int
        Where the new axis comes in.
    """


def _cuts(attrs: Any, extent: Dim) -> list[Dim]:
    """The extents of the parts."""
    sections = attrs.indices_or_sections
    if isinstance(sections, int):
        if isinstance(extent, int):
            expect(
                sections > 0 and extent % sections == 0,
                f"split requires an extent divisible by {sections}, got {extent}",
                hint="give the indices of the cuts to split unevenly",
            )
        return [apply(lambda e: e // sections, extent)] * sections
    begins = [0, *sections]
    parts: list[Dim] = []
    for i, begin in enumerate(begins):
        end = begins[i + 1] if i + 1 < len(begins) else extent
        parts.append(apply(lambda e, b=begin: e - b, end))
        expect(
            not isinstance(extent, int) or 0 <= begin <= extent,
            f"split requires cuts in [0, {extent}], got {tuple(sections)}",
        )
    expect(
        all(not isinstance(p, int) or p >= 0 for p in parts)
        and all(a <= b for a, b in itertools.pairwise(begins)),
        f"split requires increasing cuts, got {tuple(sections)}",
    )
    return parts


def _split_type(attrs: Any, data: TensorType) -> Type:
    """A tuple of tensors of the dtype of `data`, which differ from its shape along the axis alone."""
    shape = shape_of_type(data)
    axis = positive_axis(attrs.axis, len(shape), "split")
    parts = _cuts(attrs, shape[axis])
    return TupleType(
        [tensor((*shape[:axis], part, *shape[axis + 1 :]), data.dtype) for part in parts]
    )


def _fold_split(attrs: Any, arrays: Sequence[np.ndarray], out_type: Type) -> list[np.ndarray]:
    sections = attrs.indices_or_sections
    cuts = sections if isinstance(sections, int) else list(sections)
    return [np.ascontiguousarray(p) for p in np.split(arrays[0], cuts, axis=attrs.axis)]


def _sections(value: object) -> int | tuple[int, ...]:
    return value if isinstance(value, int) else as_ints(value)


def _part_count(attrs: Any) -> int:
    sections = attrs.indices_or_sections
    return sections if isinstance(sections, int) else len(sections) + 1


@operator(
    "split",
    support_level=3,
    results=_part_count,
    infer_type=_split_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.split, "indices_or_sections", "axis"),
    fold=_fold_split,
    gradient=lambda call, grad: [ops.concatenate(grad, axis=call.attrs.axis)],
    infer_layout=layout_split,
)
def split(
    data: Expr,
    indices_or_sections: Annotated[Any, Attribute("int | tuple[int, ...]", _sections)],
    axis: int = 0,
) -> TupleWrapper:
    """Part a tensor along an axis.

    Parameters
    ----------
    indices_or_sections : int or sequence of int
        A number of equal sections, or the indices at which to cut.
    """


def _repeat_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data` and its shape; the axis is `repeats` times as long."""
    shape = list(shape_of_type(data))
    axis = positive_axis(attrs.axis, len(shape), "repeat")
    shape[axis] = apply(lambda e: e * attrs.repeats, shape[axis])
    return tensor(shape, data.dtype)


def _repeat_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, attrs = call.args[0], call.attrs
    shape = known_shape(data, "repeat")
    axis = attrs.axis % len(shape)
    split = (*shape[: axis + 1], attrs.repeats, *shape[axis + 1 :])
    return [ops.sum(ops.reshape(grad, newshape=split), axis=(axis + 1,))]


@operator(
    "repeat",
    support_level=3,
    defaults={"axis": 0},
    infer_type=_repeat_type,
    fuse=OpPattern.BROADCAST,
    compute=computed_by(topi.repeat, "repeats", "axis"),
    fold=lambda attrs, arrays, out_type: [np.repeat(arrays[0], attrs.repeats, axis=attrs.axis)],
    gradient=_repeat_gradient,
)
def repeat(data: Expr, repeats: int, axis: int) -> RelayExpr:
    """Repeat each element along an axis.

    Parameters
    ----------
    repeats : int
        How often each element comes.
    """


def _tile_type(attrs: Any, data: TensorType) -> Type:
    """A tensor of the dtype of `data`: the shape and `reps` are filled up by ones in front, and
    multiplied."""
    shape, reps = shape_of_type(data), tuple(attrs.reps)
    rank = max(len(shape), len(reps))
    shape = (1,) * (rank - len(shape)) + shape
    reps = (1,) * (rank - len(reps)) + reps
    out: list[Dim] = []
    for extent, times in zip(shape, reps, strict=True):
        out.append(apply(lambda e, t: e * t, extent, times))
    return tensor(out, data.dtype)


def _tile_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    data, reps = call.args[0], call.attrs.reps
    shape = known_shape(data, "tile")
    rank = max(len(shape), len(reps))
    extents = (1,) * (rank - len(shape)) + shape
    times = (1,) * (rank - len(reps)) + tuple(reps)
    split = [n for pair in zip(times, extents, strict=True) for n in pair]
    total = ops.sum(ops.reshape(grad, newshape=tuple(split)), axis=tuple(range(0, 2 * rank, 2)))
    return [ops.reshape(total, newshape=shape)]


@operator(
    "tile",
    support_level=3,
    infer_type=_tile_type,
    fuse=OpPattern.BROADCAST,
    compute=computed_by(topi.tile, "reps"),
    fold=lambda attrs, arrays, out_type: [np.tile(arrays[0], attrs.reps)],
    gradient=_tile_gradient,
    run_time=TILE,
)
def tile(data: Expr, reps: Ints) -> RelayExpr:
    """Repeat a tensor as a whole along its axes.

    Parameters
    ----------
    reps : sequence of int or relay.Expr
        How often along each axis.
    """


def _meshgrid_type(attrs: Any, data: TensorTypes) -> Type:
    """A tuple of tensors of the operands' dtype, as many as operands, each with an axis for every
    one."""
    dtype = expect_same_dtype(data, "meshgrid")
    extents = [shape_of_type(f)[0] if len(f.shape) else 1 for f in data]
    if attrs.indexing == "xy" and len(extents) > 1:
        extents[0], extents[1] = extents[1], extents[0]
    return TupleType([tensor(extents, dtype)] * len(data))


def _meshgrid_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    types = expect_tuple(infer_type_of(call.args[0]), "meshgrid")
    count = len(types)
    order = list(range(count))
    if call.attrs.indexing == "xy" and count > 1:
        order[:2] = 1, 0
    sums = [
        ops.sum(field, axis=tuple([a for a in range(count) if a != order[i]]))
        for i, field in enumerate(fields_of(grad, count))
    ]
    return [
        Tuple([ops.reshape(s, newshape=t.concrete_shape) for s, t in zip(sums, types, strict=True)])
    ]


@operator(
    "meshgrid",
    support_level=3,
    infer_type=_meshgrid_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: topi.meshgrid(inputs, attrs.indexing),
    fold=lambda attrs, arrays, out_type: [
        np.ascontiguousarray(a) for a in np.meshgrid(*arrays, indexing=attrs.indexing)
    ],
    gradient=_meshgrid_gradient,
)
def meshgrid(data: Joined, indexing: str = "ij") -> TupleWrapper:
    """Coordinate tensors from coordinate vectors.

    Parameters
    ----------
    data : relay.Expr or sequence of relay.Expr
        The vectors, or a tuple of them.
    indexing : str
        "ij" or "xy".
    """
    vectors = _joined(data)
    count = len(vectors.fields if isinstance(vectors, Tuple) else vectors.checked_type.fields)
    return TupleWrapper(ops.meshgrid(vectors, indexing=str(indexing)), count)
