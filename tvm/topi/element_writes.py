"""Writing slices and elements: strided sets, dense forms of sparse tensors, inverse permutations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.ir.expr import PrimExpr

from . import tag
from .loops import load, loop, nest, store
from .utils import cast_scalar, dims, equals, real_axis


def strided_set(
    a: te.Tensor,
    v: te.Tensor,
    begin: te.Tensor | Sequence[int],
    end: te.Tensor | Sequence[int],
    strides: te.Tensor | Sequence[int] | None = None,
) -> te.Tensor:
    """Replace a strided slice: a[begin:end:strides] = v

    Parameters
    ----------
    a, v : te.Tensor
        The tensor, and the slice's new elements.
    begin, end, strides : te.Tensor or sequence of int
        One number for each of the leading axes; negative ones count from the end. The axes that
        vectors do not reach are taken whole, with stride 1.
    """
    shape, extents = dims(a.shape), dims(v.shape)
    count = dims(begin.shape)[0] if isinstance(begin, te.Tensor) else len(begin)

    def number(values: Any, axis: int, otherwise: Any) -> PrimExpr:
        length = dims(values.shape)[0] if isinstance(values, te.Tensor) else len(values)
        if isinstance(length, int) and axis >= length:
            return cast_scalar(otherwise, "int32")
        found = values(axis) if isinstance(values, te.Tensor) else tir.const(values[axis], "int32")
        return found.astype("int32")

    def element(*i: Any) -> Any:
        inside, at = [], list(i)
        for axis in range(count):
            step = number(() if strides is None else strides, axis, 1)
            first, last = number(begin, axis, 0), number(end, axis, shape[axis])
            hit, at[axis] = _place(i[axis], shape[axis], first, last, step, extents[axis])
            inside.append(hit)
        return tir.if_then_else(tir.all(*inside), v(*at), a(*i)) if inside else v(*i)

    return te.compute(a.shape, element, name="T_strided_set", tag=tag.INJECTIVE)


def _place(index: Any, extent: Any, begin: Any, end: Any, step: Any, count: Any) -> tuple[Any, Any]:
    """Whether an index is in a slice (numpy's rules), and which of its `count` new elements it gets.

    Where there are fewer than the slice has, which only the run may know, the others stay as they are.
    """
    is_up = step > 0
    # the last index a slice may start at, and how far an end may lie
    first = tir.Select(begin < 0, begin + extent, begin)
    last = tir.Select(end < 0, end + extent, end)
    first = tir.Select(is_up, tir.max(first, 0), tir.min(first, extent - 1))
    distance = tir.Select(is_up, index - first, first - index)
    stride = tir.max(tir.Select(is_up, step, 0 - step), 1)
    before_end = tir.Select(is_up, index < last, index > last)
    place = tir.truncdiv(distance, stride)
    is_there = equals(tir.truncmod(distance, stride), 0)
    return tir.all(distance >= 0, before_end, is_there, place < count), place


def slice_scatter(
    a: te.Tensor, src: te.Tensor, start: Any, end: Any, step: Any, axis: int
) -> te.Tensor:
    """Replace a strided slice along one axis: a[..., start:end:step, ...] = src

    Parameters
    ----------
    a, src : te.Tensor
        The tensor, and the slice's new elements.
    start, end, step : int or PrimExpr
        The slice; negative bounds count from the end.
    axis : int
        The axis.

    Returns
    -------
    te.Tensor
        A tensor of the shape of ``a``.
    """
    at = real_axis(axis, len(a.shape))
    extent = cast_scalar(dims(a.shape)[at], "int64")
    count = cast_scalar(dims(src.shape)[at], "int64")
    first, last, stride = [cast_scalar(value, "int64") for value in (start, end, step)]

    def element(*i: Any) -> Any:
        hit, place = _place(i[at].astype("int64"), extent, first, last, stride, count)
        return tir.if_then_else(hit, src(*i[:at], place, *i[at + 1 :]), a(*i))

    return te.compute(a.shape, element, name="T_slice_scatter", tag=tag.INJECTIVE)


def sparse_to_dense(
    sparse_indices: te.Tensor,
    output_shape: Sequence[int],
    sparse_values: te.Tensor,
    default_value: Any = 0,
) -> te.Tensor:
    """The dense form of a tensor given by its elements.

    Parameters
    ----------
    sparse_indices : te.Tensor
        An index, (elements,) of them, or (elements, rank).
    output_shape : sequence of int
        The dense shape.
    sparse_values : te.Tensor
        One value, or (elements,).
    default_value : te.Tensor or float
        What stands elsewhere.
    """
    inputs = [sparse_indices, sparse_values]
    if isinstance(default_value, te.Tensor):
        inputs.append(default_value)
    rank = len(sparse_indices.shape)
    count = dims(sparse_indices.shape)[0] if rank else 1

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        indices, values = ins[:2]
        out = outs[0]
        default = load(ins[2], []) if len(ins) > 2 else cast_scalar(default_value, out.dtype)

        def one(k: tir.Var) -> tir.Stmt:
            depth = len(output_shape)
            positions = [load(indices, [k, d][:rank]).astype("int32") for d in range(depth)]
            return store(out, load(values, [k] if len(sparse_values.shape) else []), positions)

        filled = nest("i", dims(output_shape), lambda v: store(out, default, v))
        return tir.stmt_seq(filled, loop("k", count, one))

    return te.extern(
        [list(output_shape)], inputs, body, name="sparse_to_dense", dtype=sparse_values.dtype
    )


def invert_permutation(data: te.Tensor) -> te.Tensor:
    """The permutation that undoes another: out[data[i]] = i"""

    def body(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        return loop(
            "i",
            dims(data.shape)[0],
            lambda i: store(outs[0], i.astype(data.dtype), [load(ins[0], [i])]),
        )

    return te.extern([data.shape], [data], body, name="invert_permutation", dtype=data.dtype)
