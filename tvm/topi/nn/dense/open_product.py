"""Products of two computed matrices whose rows or columns only the run knows, on processors.

for n in parallel(batch):
    B' = panels of B                                 # [panel, k, 32]
    for panel, tile of rows:
        acc[6][2][0:16] = 0
        for k:
            for y in unrolled(6), v in unrolled(2):
                acc[y][v] += broadcast(A[n, tile * 6 + y, k]) * B'[panel, k, v * 16 : v * 16 + 16]
        C[n, tile, panel] = epilogue(acc)            # of the rows and columns that there are

Open extents are rounded up to tiles that fit the registers of any processor: rows beyond the last
are computed from the last one and dropped. No condition is left in the sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from tvm import te, tir
from tvm.support.docstrings import described_by
from tvm.te import tensor_ops

from ...cpu.common import fuse_and_parallel, has_shape_of, processor
from ...generic.schedules import open_schedule
from ...math import cast
from ...utils import (
    ceil_div,
    dims,
    is_dynamic_shape,
    prod,
    product_dtype,
    require_equal,
    rounded_up,
)
from .compute import SYMBOLIC_TILE, crop, matmul, padded_rows, with_bias
from .cpu import (
    MatmulConfig,
    inline_injective_but,
    masked_matmul_choices,
    schedule_tile,
    vector_loop,
)
from .pack_cpu import PackedMatmulConfig, matmul_pack_choices
from .pack_cpu import matmul_pack as pack_known_extents
from .pack_cpu import schedule_matmul_pack as schedule_known_extents

TAG = "open_product"
PANELS = "T_open_product_panels"
# columns of a panel where their number is open: full vectors of any processor
OPEN_COLUMNS = 32
# stands for extents that only the run knows, where a cost is asked for
_NOMINAL_EXTENT = 128


def is_open_product(a: te.Tensor, b: te.Tensor) -> bool:
    """Whether the matrices' extents, those of a batch aside, are left to the run."""
    return is_dynamic_shape((*a.shape[-2:], *b.shape[-2:]))


def open_product(
    a: te.Tensor,
    b: te.Tensor,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    shape: Any = None,
) -> te.Tensor:
    """A product of matrices; leading axes are those of a batch, and broadcast.

    Parameters
    ----------
    a, b : te.Tensor
        The matrices.
    out_dtype : str, optional
        The dtype of the sums, the operands' by default.
    transpose_a, transpose_b : bool
        Whether an operand comes transposed.
    shape : sequence, optional
        The product's shape, if it is known better.
    """
    dtype = out_dtype or a.dtype
    if (wide := product_dtype(dtype)) != dtype:
        return cast(open_product(a, b, wide, transpose_a, transpose_b, shape), dtype)
    batches = a.shape[:-2], b.shape[:-2]
    lead = dims(tensor_ops.broadcast_shape(*batches))
    inner, rows = dims(a.shape[-2:]) if transpose_a else dims(a.shape[-2:])[::-1]
    columns, lines = dims(b.shape[-2:]) if transpose_b else dims(b.shape[-2:])[::-1]
    require_equal("a product of matrices", "equal inner extents", inner, lines)
    tile = _choose_tile(rows, columns, dtype)
    height = rounded_up(rows, tile.rows)
    width = rounded_up(columns, tile.columns)
    is_packed = _is_worth_packing(columns, inner, dtype, transpose_b, not lead)
    right = _panels(b, transpose_b, tile.columns) if is_packed else b
    k = te.reduce_axis((0, inner), name="k")

    def element(*i: Any) -> Any:
        *outer, y, x = i
        of_a, of_b = [tensor_ops.broadcast_indices(outer, batch, lead) for batch in batches]
        y = y if height is rows else tir.min(y, rows - 1)
        left = a(*of_a, k.var, y) if transpose_a else a(*of_a, y, k.var)
        if is_packed:
            panel, column = tir.indexdiv(x, tile.columns), tir.indexmod(x, tile.columns)
            value = right(*of_b, panel, k.var, column)
        else:
            value = right(*of_b, k.var, x)
        return te.sum(left.astype(dtype) * value.astype(dtype), axis=k)

    padded = (*lead, height, width if is_packed else columns)
    product = te.compute(padded, element, name="T_open_product", tag=TAG, attrs=asdict(tile))
    return crop(product, tuple(shape or (*lead, rows, columns)))


@described_by(matmul)
def matmul_pack(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    config: PackedMatmulConfig | None = None,
) -> te.Tensor:
    """A product of two matrices that packs its operands where that pays.

    Parameters
    ----------
    config : PackedMatmulConfig, optional
        Tiles and blocks of known extents; chosen for the current target's processor by default.
    """
    if config is not None or not is_open_product(tensor_a, tensor_b):
        flags = (transpose_a, transpose_b)
        return pack_known_extents(tensor_a, tensor_b, bias, out_dtype, *flags, config)
    product = open_product(tensor_a, tensor_b, out_dtype, transpose_a, transpose_b)
    return product if bias is None else with_bias(product, bias, str(product.dtype))


def schedule_matmul_pack(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule a product of `matmul_pack`, and what is fused behind it."""
    _, _, ops = open_schedule(outs)
    is_open = any([op.tag == TAG for op in ops])
    return (schedule_open_product if is_open else schedule_known_extents)(outs)


def _choose_tile(rows: Any, columns: Any, dtype: str) -> MatmulConfig:
    """The tile in registers: open rows and columns fill small ones, so that little of the last is dropped."""
    info = processor()
    height = padded_rows(rows) if isinstance(rows, int) else SYMBOLIC_TILE
    width = columns if isinstance(columns, int) else OPEN_COLUMNS
    choices = masked_matmul_choices(height, width, dtype, info)
    return MatmulConfig(1, 1, 1) if choices is None else choices.best()


def _is_worth_packing(
    columns: Any, inner: Any, dtype: str, is_transposed: bool, is_single: bool
) -> bool:
    """Whether vectors of columns are better loaded from panels; always where their last one is open."""
    if is_transposed or not isinstance(columns, int):
        return True
    if not is_single:
        return False
    steps = inner if isinstance(inner, int) else _NOMINAL_EXTENT
    return matmul_pack_choices(_NOMINAL_EXTENT, columns, steps, dtype, processor()) is not None


def _panels(b: te.Tensor, is_transposed: bool, width: int) -> te.Tensor:
    """The right operand as [panel, k, column]; what is beyond its columns counts nothing."""
    *lead, first, second = dims(b.shape)
    inner, columns = (second, first) if is_transposed else (first, second)
    is_even = isinstance(columns, int) and columns % width == 0
    nothing = tir.const(0, b.dtype)

    def element(*i: Any) -> Any:
        *outer, panel, k, x = i
        column = panel * width + x
        if is_transposed:
            # the last column in place of those that are not there
            return b(*outer, column if is_even else tir.min(column, columns - 1), k)
        value = b(*outer, k, column)
        return value if is_even else tir.if_then_else(column < columns, value, nothing)

    shape = (*lead, ceil_div(columns, width), inner, width)
    attrs = {"is_transposed": int(is_transposed)}
    return te.compute(shape, element, name=PANELS, tag="injective", attrs=attrs)


def schedule_open_product(outs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Schedule `open_product`, and what is fused behind it.

    Parameters
    ----------
    outs : te.Tensor or sequence of te.Tensor
        The output.
    """
    s, output, ops = open_schedule(outs)
    anchor = next(op for op in ops if op.tag == TAG)
    config = MatmulConfig(**{name: int(value) for name, value in anchor.attrs.items()})
    product = anchor.output(0)
    cropped = next(op.output(0) for op in ops if anchor in [t.op for t in op.input_tensors])
    final = output if has_shape_of(output, cropped) else cropped
    inline_injective_but(s, [op for op in ops if op is not final.op], anchor, output, (PANELS,))
    if final is not output:
        fuse_and_parallel(s, output, list(s[output].op.axis)[:2])
    copied = [t for t in product.op.input_tensors if t.op.name == PANELS]
    batched = _is_large_batch(dims(product.shape)[:-2])
    by_rows = not batched and _has_few_panels(dims(product.shape)[-1], config)
    position = schedule_tile(s, final, product, config, batched=batched, by_rows=by_rows)
    for panels in copied:
        is_own = batched and dims(panels.shape)[:-3] == dims(product.shape)[:-2]
        _schedule_panels(s, panels, config, position if is_own else None)
    return s


def _is_large_batch(lead: Sequence[Any]) -> bool:
    """Whether each thread gets a matrix."""
    known = [extent for extent in lead if isinstance(extent, int)]
    return len(known) < len(lead) or prod(known) >= processor().cores


def _has_few_panels(columns: Any, config: MatmulConfig) -> bool:
    return isinstance(columns, int) and ceil_div(columns, config.columns) < processor().cores


def _schedule_panels(
    s: te.Schedule,
    panels: te.Tensor,
    config: MatmulConfig,
    position: tuple[te.Tensor, tir.IterVar] | None,
) -> None:
    is_transposed = bool(int(panels.op.attrs["is_transposed"]))
    *lead, panel, inner, column = s[panels].op.axis
    if position is not None:
        s[panels].compute_at(s[position[0]], position[1])
    else:
        fuse_and_parallel(s, panels, [*lead, panel])
    if is_transposed:
        # a line is read in order: gathers of a column would compute an address for each element
        s[panels].reorder(column, inner)
    else:
        vector_loop(s, panels, column, config)
