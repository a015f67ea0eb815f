"""PyTorch's functions whose operators depend on sizes, for tensors of symbolic ones.

The converters of relay's importer count with numbers; they are asked where all sizes are known.
"""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from tvm import tir
from tvm.relax import op as _op
from tvm.relax.expr import PrimValue, const

from .base_fx_graph_translator import EMITTERS, Emitter, NoEmitter, Sizes, emitter
from .pointwise import Importer, as_float, size_tensor


def _axes(dims: Any, rank: int) -> list[int]:
    if dims is None or dims == []:
        return list(range(rank))
    return [d % rank for d in (dims if isinstance(dims, (list, tuple)) else [dims])]


# ---- moments


def _deviation(e: Importer, x: Any, axes: list[int]) -> Any:
    """What a tensor has more than its mean."""
    return e.emit(_op.subtract(x, e.emit(_op.mean(x, axes, keepdims=True))))


def _moments(root: bool, with_mean: bool) -> Emitter:
    def emit(
        e: Importer, x: Any, dim: Any = None, unbiased: bool = True, keepdim: bool = False,
        correction: Any = None,
    ) -> Any:  # fmt: skip
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        dims = e.shape_of(x)
        axes = _axes(dim, len(dims))
        count: Any = reduce(mul, [dims[axis] for axis in axes], 1)
        if isinstance(count, int):
            raise NoEmitter("moments of a known number of elements")
        freedom = tir.max(count - int(unbiased if correction is None else correction), 0)
        centred = _deviation(e, x, axes)
        total = e.emit(_op.sum(e.emit(_op.multiply(centred, centred)), axes, keepdims=keepdim))
        found = e.emit(_op.divide(total, size_tensor(e, freedom, e.dtype_of(x))))
        found = e.emit(_op.sqrt(found)) if root else found
        return [found, e.emit(_op.mean(x, axes, keepdims=keepdim))] if with_mean else found

    return emit


EMITTERS.update(
    {
        "std": _moments(True, False), "var": _moments(False, False),
        "std_mean": _moments(True, True), "var_mean": _moments(False, True),
    }
)  # fmt: skip


@emitter("instance_norm")
def _instance_norm(
    e: Importer, x: Any, weight: Any = None, bias: Any = None, mean: Any = None,
    variance: Any = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5,
    cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    dims = e.shape_of(x)
    if dims.are_known or not use_input_stats:
        raise NoEmitter("instances of known sizes, or stored moments")
    axes = list(range(2, len(dims)))
    centred = _deviation(e, x, axes)
    spread = e.emit(_op.mean(e.emit(_op.multiply(centred, centred)), axes, keepdims=True))
    spread = e.emit(_op.sqrt(e.emit(_op.add(spread, const(eps, e.dtype_of(x))))))
    found = e.emit(_op.divide(centred, spread))
    for function, operand in ((_op.multiply, weight), (_op.add, bias)):
        if operand is not None:
            shape = [dims[1], *[1] * len(axes)]
            found = e.emit(function(found, e.emit(_op.reshape(operand, shape))))
    return found


# ---- places of elements


def _counted(e: Importer, count: Any, step: Any = 1, start: Any = 0) -> Any:
    """A vector of indices."""
    end = start + count * step
    return e.emit(_op.arange(PrimValue(start), PrimValue(end), PrimValue(step), dtype="int64"))


@emitter("roll")
def _roll(e: Importer, x: Any, shifts: Any, dims: Any = ()) -> Any:
    sizes = e.shape_of(x)
    if sizes.are_known:
        raise NoEmitter("elements of known sizes")
    by = shifts if isinstance(shifts, (list, tuple)) else [shifts]
    axes = dims if isinstance(dims, (list, tuple)) else [dims]
    rolled = x if axes else e.emit(_op.reshape(x, [-1]))
    for shift, axis in zip(by, axes or [0], strict=True):
        extent = e.shape_of(rolled)[axis]
        index = e.emit(_op.subtract(_counted(e, extent), size_tensor(e, shift, "int64")))
        index = e.emit(_op.floor_mod(index, size_tensor(e, extent, "int64")))
        rolled = e.emit(_op.take(rolled, index, axis % len(e.shape_of(rolled))))
    return rolled if axes else e.emit(_op.reshape(rolled, list(sizes)))


@emitter("unfold")
def _unfold(e: Importer, x: Any, dimension: int, size: int, step: int) -> Any:
    """Windows along an axis, their elements along a new last one."""
    dims = e.shape_of(x)
    axis = dimension % len(dims)
    if isinstance(dims[axis], int):
        raise NoEmitter("windows of a known extent")
    first = _counted(e, (dims[axis] - size) // step + 1, step)
    index = e.emit(_op.add(e.emit(_op.expand_dims(first, 1)), _counted(e, size)))
    order = [*range(axis + 1), *range(axis + 2, len(dims) + 1), axis + 1]
    return e.emit(_op.permute_dims(e.emit(_op.take(x, index, axis)), order))


@emitter("diagonal", "diagonal_copy")
def _diagonal(e: Importer, x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    dims = e.shape_of(x)
    first, second = [d % len(dims) for d in (dim1, dim2)]
    rows, columns = dims[first], dims[second]
    if Sizes([rows, columns]).are_known:
        raise NoEmitter("diagonals of matrices of known sizes")
    rest = [axis for axis in range(len(dims)) if axis not in (first, second)]
    matrices = e.emit(_op.permute_dims(x, [*rest, first, second]))
    flat = e.emit(_op.reshape(matrices, [*[dims[axis] for axis in rest], rows * columns]))
    start = offset if offset >= 0 else -offset * columns
    below, beside = max(-offset, 0), max(offset, 0)
    if rows is columns or tir.analysis.expr_deep_equal(*map(tir.convert, (rows, columns))):
        length = rows - abs(offset)
    else:
        length = tir.max(tir.min(rows - below, columns - beside), 0)
    return e.emit(_op.take(flat, _counted(e, length, columns + 1, start), len(rest)))


@emitter("as_strided")
def _as_strided(
    e: Importer, x: Any, size: Any, stride: Any, storage_offset: int | None = None
) -> Any:
    """Elements by their distances in memory, which is that of a dense tensor."""
    if e.shape_of(x).are_known or not Sizes([*size, *stride, storage_offset or 0]).are_known:
        raise NoEmitter("a view of a tensor of known sizes, or of symbolic distances")
    where = np.full(tuple(size), storage_offset or 0, "int64")
    for axis, (extent, distance) in enumerate(zip(size, stride, strict=True)):
        where = where + (np.arange(extent) * distance).reshape([-1, *[1] * (len(size) - axis - 1)])
    flat = e.emit(_op.reshape(x, [-1]))
    return e.emit(_op.take(flat, const(where, "int64"), 0))


# ---- images


def _upsampled(mode: str) -> Emitter:
    def emit(e: Importer, x: Any, output_size: Any = None, *options: Any) -> Any:
        if not output_size or all([isinstance(size, int) for size in output_size]):
            raise NoEmitter("images of known sizes")
        corners = {"align_corners": options[0]} if mode != "nearest" else {}
        return EMITTERS["interpolate"](e, x, size=output_size, mode=mode, **corners)

    return emit


EMITTERS.update(
    {f"upsample_{mode}2d": _upsampled(mode) for mode in ("nearest", "bilinear", "bicubic")}
)


# ---- products


@emitter("mv", "dot")
def _vector_product(e: Importer, a: Any, b: Any) -> Any:
    if e.shape_of(a).are_known and e.shape_of(b).are_known:
        raise NoEmitter("products of known sizes")
    return EMITTERS["matmul"](e, as_float(e, a), as_float(e, b))


@emitter("addmv")
def _addmv(e: Importer, x: Any, matrix: Any, vector: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = _vector_product(e, matrix, vector)
    parts = [
        part if factor == 1 else EMITTERS["mul"](e, part, factor)
        for part, factor in ((x, beta), (product, alpha))
    ]
    return e.emit(_op.add(*parts))
