"""A batch of products of narrow numbers, with both factors in the words of dot-product instructions.

out[n, y, x] = sum over word, k of left[n, y, word * 4 + k] * right[n, word, x, k]

Neither factor is known before the run: both are brought into words first, zeros behind their ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir
from tvm.target import Target

from ...cpu.common import fuse_and_parallel, processor, vector_lanes
from ...generic.schedules import open_schedule
from ...utils import ceil_div, dims, is_target, rounded_up
from ...x86.dot_product import DotProduct, dot_dtypes, dot_product_intrin, find_dot_product

TAG = "batch_matmul_dot"
_ROWS = 6  # of sums in registers
_VECTORS = 4


def find_batch_dot(
    tensor_a: te.Tensor, tensor_b: te.Tensor, out_dtype: str, target: Target | None = None
) -> DotProduct | None:
    """The target's instruction for the factors; None if their extents are left to the run."""
    shapes = (*dims(tensor_a.shape), *dims(tensor_b.shape))
    if not all(isinstance(d, int) and d > 0 for d in shapes) or not is_target("cpu"):
        return None
    dtypes = dot_dtypes(tensor_a.dtype, tensor_b.dtype, out_dtype, target)
    lanes = processor(target).vector_bits // 32
    dot = None if dtypes is None else find_dot_product(*dtypes, lanes, target)
    return dot if dot is not None and dot.sums == out_dtype else None


def batch_matmul_dot(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    dot: DotProduct,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> te.Tensor:
    """A batch of matrix products by dot-product instructions; a batch of 1 is broadcast.

    Parameters
    ----------
    tensor_a, tensor_b : te.Tensor
        Tensors of three dimensions, of dtypes that the instruction's hold.
    dot : DotProduct
        The instruction.
    transpose_a, transpose_b : bool
        Whether the matrices come transposed.
    """
    a, b = dims(tensor_a.shape), dims(tensor_b.shape)
    rows, inner = (a[2], a[1]) if transpose_a else (a[1], a[2])
    columns = b[1] if transpose_b else b[2]
    words = ceil_div(inner, dot.group)
    height, width = _tiles(rows, columns, dot)
    left = te.compute(
        (a[0], height, words * dot.group),
        lambda n, y, k: _element(tensor_a, n, y, k, (rows, inner), transpose_a, dot.data),
        name="T_batch_rows",
        tag="injective",
    )
    right = te.compute(
        (b[0], words, width, dot.group),
        lambda n, g, x, k: _element(
            tensor_b, n, g * dot.group + k, x, (inner, columns), transpose_b, dot.weight
        ),
        name="T_batch_words",
        tag="injective",
    )
    word = te.reduce_axis((0, words), name="word")
    k = te.reduce_axis((0, dot.group), name="k")

    def element(n: Any, y: Any, x: Any) -> Any:
        na, nb = 0 if a[0] == 1 else n, 0 if b[0] == 1 else n
        value = left(na, y, word.var * dot.group + k.var).astype(dot.sums)
        return te.sum(value * right(nb, word.var, x, k.var).astype(dot.sums), axis=[word, k])

    shape = (max(a[0], b[0]), height, width)
    sums = te.compute(shape, element, name="T_batch_sums", tag=TAG)

    def cropped(n: Any, y: Any, x: Any) -> Any:
        # zero times the last element: bounds of the sums stay those of full tiles
        last = tir.Mul(tir.const(0, dot.sums), sums(n, height - 1, width - 1))
        return tir.Add(sums(n, y, x), last)

    return te.compute((shape[0], rows, columns), cropped, name="T_crop", tag="injective")


def _tiles(rows: int, columns: int, dot: DotProduct) -> tuple[int, int]:
    """Rows and columns that tiles of sums cover."""
    high, wide = _tile(rows, columns, dot)
    return rounded_up(rows, high), rounded_up(columns, wide)


def _tile(rows: int, columns: int, dot: DotProduct) -> tuple[int, int]:
    vectors = min(_VECTORS, ceil_div(columns, dot.lanes))
    return min(_ROWS if vectors > 2 else 2 * _ROWS, rows), vectors * dot.lanes


def _element(
    source: te.Tensor, n: Any, y: Any, x: Any, extents: tuple[int, int], swap: bool, dtype: str
) -> Any:
    """An element of a matrix in another dtype; zero beyond its ends."""
    value = (source(n, x, y) if swap else source(n, y, x)).astype(dtype)
    inside = tir.all(y < extents[0], x < extents[1])
    return tir.if_then_else(inside, value, tir.const(0, dtype))


def schedule_batch_matmul_dot(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule `batch_matmul_dot`, and what is fused behind it.

    Parameters
    ----------
    outs : te.Tensor or sequence of te.Tensor
        The output.
    """
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == TAG)
    sums, (left, right) = anchor.output(0), anchor.input_tensors
    for op in ops:
        copies = (anchor, left.op, right.op, output.op)
        if op.tag and not isinstance(op, te.PlaceholderOp) and all(op is not c for c in copies):
            s[op].compute_inline()
    info = processor()
    lanes = info.vector_bits // 32
    dot = find_dot_product(left.dtype, right.dtype, lanes)
    assert dot is not None
    for copy in (left, right):
        fuse_and_parallel(s, copy, list(s[copy].op.axis)[:2])
    _schedule_sums(s, sums, dot)
    *outer, last = s[output].op.axis
    fuse_and_parallel(s, output, outer)
    width = vector_lanes(dims(output.shape)[-1], output.dtype, info)
    if width > 1 and outer:
        _, lane = s[output].split(last, factor=width)
        s[output].vectorize(lane)
    return s


def _schedule_sums(s: te.Schedule, sums: te.Tensor, dot: DotProduct) -> None:
    high, wide = _tile_within(dims(sums.shape)[1], dims(sums.shape)[2], dot)
    acc = s.cache_write(sums, "local")
    n, y, x = s[sums].op.axis
    y_outer, y_inner = s[sums].split(y, factor=high)
    x_outer, x_inner = s[sums].split(x, factor=wide)
    s[sums].reorder(n, x_outer, y_outer, y_inner, x_inner)
    s[acc].compute_at(s[sums], y_outer)
    fuse_and_parallel(s, sums, [n, x_outer])
    vector, lane = s[sums].split(x_inner, factor=dot.lanes)
    s[sums].unroll(y_inner)
    s[sums].unroll(vector)
    s[sums].vectorize(lane)
    _, y, x = s[acc].op.axis
    word, k = s[acc].op.reduce_axis
    vector, lane = s[acc].split(x, factor=dot.lanes)
    s[acc].reorder(word, y, vector, lane, k)
    s[acc].unroll(y)
    s[acc].unroll(vector)
    s[acc].tensorize(lane, dot_product_intrin(dot))


def _tile_within(height: int, width: int, dot: DotProduct) -> tuple[int, int]:
    """The tile of sums that were made of whole ones."""
    vectors = max(v for v in range(1, _VECTORS + 1) if width % (v * dot.lanes) == 0)
    limit = _ROWS if vectors > 2 else 2 * _ROWS
    return max(h for h in range(1, limit + 1) if height % h == 0), vectors * dot.lanes
