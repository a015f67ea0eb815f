"""Operators that join and part tensors: concatenate, stack, split, repeat, tile."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tvm import topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.expr import Call, Tuple, TupleWrapper

from .attributes import as_int, as_ints, as_list, is_run_time
from .layout import layout_concatenate
from .layout_axes import layout_split
from .registry import OpPattern, define_op, ops
from .types import (
    Dim,
    apply,
    expect,
    expect_same_dtype,
    expect_tensor,
    expect_tuple,
    may_equal,
    positive_axis,
    refine,
    shape_of_type,
    show,
    tensor,
)


class ConcatenateAttrs(Attrs, key="relay.attrs.ConcatenateAttrs"):
    """The axis along which tensors are joined."""

    axis: int = 0


def _concatenate_type(attrs: ConcatenateAttrs, arg_types: Sequence[Type]) -> Type:
    fields = expect_tuple(arg_types[0], "concatenate")
    expect(len(fields) > 0, "concatenate requires at least one tensor")
    dtype = expect_same_dtype(fields, "concatenate")
    out = list(shape_of_type(fields[0]))
    axis = positive_axis(attrs.axis, len(out), "concatenate")
    for field in fields[1:]:
        shape = shape_of_type(field)
        expect(
            len(shape) == len(out)
            and all(i == axis or may_equal(shape[i], out[i]) for i in range(len(out))),
            f"concatenate along axis {axis} requires equal other dimensions, "
            f"got {show(shape_of_type(fields[0]))} and {show(shape)}",
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


define_op(
    "concatenate",
    ConcatenateAttrs,
    inputs=("data",),
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


class StackAttrs(Attrs, key="relay.attrs.StackAttrs"):
    """Where the new axis comes in."""

    axis: int = 0


def _stack_type(attrs: StackAttrs, arg_types: Sequence[Type]) -> Type:
    fields = expect_tuple(arg_types[0], "stack")
    expect(len(fields) > 0, "stack requires at least one tensor")
    dtype = expect_same_dtype(fields, "stack")
    shape = list(shape_of_type(fields[0]))
    for field in fields[1:]:
        other = shape_of_type(field)
        expect(
            len(other) == len(shape)
            and all(may_equal(a, b) for a, b in zip(other, shape, strict=True)),
            f"stack requires tensors of one shape, got {show(shape)} and {show(other)}",
        )
        shape = [refine(a, b) for a, b in zip(shape, other, strict=True)]
    axis = positive_axis(attrs.axis, len(shape) + 1, "stack")
    return tensor([*shape[:axis], len(fields), *shape[axis:]], dtype)


define_op(
    "stack",
    StackAttrs,
    inputs=("data",),
    infer_type=_stack_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: [topi.stack(inputs, attrs.axis)],
    fold=lambda attrs, arrays, out_type: [np.stack(list(arrays), axis=attrs.axis)],
)


class SplitAttrs(Attrs, key="relay.attrs.SplitAttrs"):
    """A number of equal sections, or the indices of the cuts."""

    indices_or_sections: int | tuple[int, ...]
    axis: int = 0


def _cuts(attrs: SplitAttrs, extent: Dim) -> list[Dim]:
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


def _split_type(attrs: SplitAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "split")
    shape = shape_of_type(data)
    axis = positive_axis(attrs.axis, len(shape), "split")
    parts = _cuts(attrs, shape[axis])
    return TupleType(
        [tensor((*shape[:axis], part, *shape[axis + 1 :]), data.dtype) for part in parts]
    )


def _fold_split(
    attrs: SplitAttrs, arrays: Sequence[np.ndarray], out_type: Type
) -> list[np.ndarray]:
    sections = attrs.indices_or_sections
    cuts = sections if isinstance(sections, int) else list(sections)
    return [np.ascontiguousarray(p) for p in np.split(arrays[0], cuts, axis=attrs.axis)]


define_op(
    "split",
    SplitAttrs,
    inputs=("data",),
    infer_type=_split_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: topi.split(
        inputs[0], attrs.indices_or_sections, attrs.axis
    ),
    fold=_fold_split,
    gradient=lambda call, grad: [ops.concatenate(grad, axis=call.attrs.axis)],
    infer_layout=layout_split,
)


class RepeatAttrs(Attrs, key="relay.attrs.RepeatAttrs"):
    """How often each element comes."""

    repeats: int
    axis: int = 0


def _repeat_type(attrs: RepeatAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "repeat")
    shape = list(shape_of_type(data))
    axis = positive_axis(attrs.axis, len(shape), "repeat")
    shape[axis] = apply(lambda e: e * attrs.repeats, shape[axis])
    return tensor(shape, data.dtype)


define_op(
    "repeat",
    RepeatAttrs,
    inputs=("data",),
    infer_type=_repeat_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [topi.repeat(inputs[0], attrs.repeats, attrs.axis)],
    fold=lambda attrs, arrays, out_type: [np.repeat(arrays[0], attrs.repeats, axis=attrs.axis)],
)


class TileAttrs(Attrs, key="relay.attrs.TileAttrs"):
    """How often the tensor comes along each axis."""

    reps: tuple[int, ...]


def _tile_type(attrs: TileAttrs, arg_types: Sequence[Type]) -> Type:
    data = expect_tensor(arg_types[0], "tile")
    shape, reps = shape_of_type(data), attrs.reps
    rank = max(len(shape), len(reps))
    shape = (1,) * (rank - len(shape)) + shape
    reps = (1,) * (rank - len(reps)) + reps
    out: list[Dim] = []
    for extent, times in zip(shape, reps, strict=True):
        out.append(apply(lambda e, t=times: e * t, extent))
    return tensor(out, data.dtype)


define_op(
    "tile",
    TileAttrs,
    inputs=("data",),
    infer_type=_tile_type,
    fuse=OpPattern.BROADCAST,
    compute=lambda attrs, inputs, out_type: [topi.tile(inputs[0], attrs.reps)],
    fold=lambda attrs, arrays, out_type: [np.tile(arrays[0], attrs.reps)],
)


class MeshgridAttrs(Attrs, key="relay.attrs.MeshgridAttrs"):
    """ "ij" for matrix order, "xy" for the first two axes exchanged."""

    indexing: str = "ij"


def _meshgrid_type(attrs: MeshgridAttrs, arg_types: Sequence[Type]) -> Type:
    fields = expect_tuple(arg_types[0], "meshgrid")
    dtype = expect_same_dtype(fields, "meshgrid")
    extents = [shape_of_type(f)[0] if len(f.shape) else 1 for f in fields]
    if attrs.indexing == "xy" and len(extents) > 1:
        extents[0], extents[1] = extents[1], extents[0]
    return TupleType([tensor(extents, dtype)] * len(fields))


define_op(
    "meshgrid",
    MeshgridAttrs,
    inputs=("data",),
    infer_type=_meshgrid_type,
    fuse=OpPattern.INJECTIVE,
    compute=lambda attrs, inputs, out_type: topi.meshgrid(inputs, attrs.indexing),
    fold=lambda attrs, arrays, out_type: [
        np.ascontiguousarray(a) for a in np.meshgrid(*arrays, indexing=attrs.indexing)
    ],
)


def _as_tuple(data: object) -> RelayExpr:
    if isinstance(data, TupleWrapper):
        return data.astuple()
    if isinstance(data, RelayExpr):
        return data
    fields = as_list(data, "tensors")
    if not fields:
        raise ValueError("concatenate, stack and meshgrid require at least one tensor")
    return Tuple(fields)


def concatenate(data: RelayExpr | Sequence[RelayExpr], axis: int) -> RelayExpr:
    """Join tensors along an axis.

    Parameters
    ----------
    data : relay.Expr or sequence of relay.Expr
        The tensors, or a tuple of them.
    axis : int
        The axis.
    """
    return ops.concatenate(_as_tuple(data), axis=as_int(axis))


def stack(data: RelayExpr | Sequence[RelayExpr], axis: int) -> RelayExpr:
    """Join tensors of one shape along a new axis.

    Parameters
    ----------
    data : relay.Expr or sequence of relay.Expr
        The tensors, or a tuple of them.
    axis : int
        Where the new axis comes in.
    """
    return ops.stack(_as_tuple(data), axis=as_int(axis))


def split(data: RelayExpr, indices_or_sections: int | Sequence[int], axis: int = 0) -> TupleWrapper:
    """Part a tensor along an axis.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    indices_or_sections : int or sequence of int
        A number of equal sections, or the indices at which to cut.
    axis : int
        The axis.
    """
    if isinstance(indices_or_sections, int):
        sections: int | tuple[int, ...] = indices_or_sections
        count = indices_or_sections
    else:
        sections = as_ints(indices_or_sections)
        count = len(sections) + 1
    return TupleWrapper(ops.split(data, indices_or_sections=sections, axis=as_int(axis)), count)


def repeat(data: RelayExpr, repeats: int, axis: int) -> RelayExpr:
    """Repeat each element along an axis.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    repeats : int
        How often each element comes.
    axis : int
        The axis.
    """
    return ops.repeat(data, repeats=as_int(repeats), axis=as_int(axis))


def tile(data: RelayExpr, reps: Sequence[int] | RelayExpr) -> RelayExpr:
    """Repeat a tensor as a whole along its axes.

    Parameters
    ----------
    data : relay.Expr
        The tensor.
    reps : sequence of int or relay.Expr
        How often along each axis.
    """
    if is_run_time(reps):
        return Op.get("dyn.tile")(data, reps, reps=())
    return ops.tile(data, reps=as_ints(reps))


def meshgrid(data: RelayExpr | Sequence[RelayExpr], indexing: str = "ij") -> TupleWrapper:
    """Coordinate tensors from coordinate vectors.

    Parameters
    ----------
    data : relay.Expr or sequence of relay.Expr
        The vectors, or a tuple of them.
    indexing : str
        "ij" or "xy".
    """
    vectors = _as_tuple(data)
    count = len(vectors.fields) if isinstance(vectors, Tuple) else len(vectors.checked_type.fields)
    return TupleWrapper(ops.meshgrid(vectors, indexing=str(indexing)), count)
