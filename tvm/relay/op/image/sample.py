"""Grids, sampling images by them, and dilation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tvm import te, topi
from tvm.ir.attrs import Attrs
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TensorType, Type
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, const
from tvm.topi.image.grid_sample import METHODS, PADDING_MODES

from ..computes import RESULT_DTYPE, computed_by
from ..known_shapes import known_shape
from ..layout_shapes import axes_extents, expect_layouts, shape_in_layout, window_counts
from ..operator import Expr, Ints, OptionalStr, Padding2, Spatial2, operator
from ..registry import OpPattern, ops
from ..sampling import composed_grid_sample
from ..schedules import default_schedules
from ..types import Tensor3, expect, expect_dim, expect_tensor, shape_of_type, tensor


def _affine_grid_type(attrs: Any, data: Tensor3) -> Type:
    who = "image.affine_grid"
    batch, rows, columns = shape_of_type(data)
    expect_dim(rows, 2, who, "the rows of a map")
    expect_dim(columns, 3, who, "the columns of a map")
    expect(len(attrs.target_shape) == 2, f"{who} requires two extents, got {attrs.target_shape}")
    return tensor((batch, 2, *attrs.target_shape), data.dtype)


def _grid_sample_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    """A tensor of the batch, the channels and the dtype of `data`, and the spatial extents of the
    grid."""
    who = "image.grid_sample"
    expect(
        attrs.layout in ("NCHW", "NCDHW"),
        f"{who} requires a layout of NCHW or NCDHW, got {attrs.layout!r}",
    )
    rank = len(attrs.layout)
    data = expect_tensor(arg_types[0], who, "data", rank)
    grid = expect_tensor(arg_types[1], who, "grid", rank)
    known = METHODS if rank == 4 else METHODS[:2]
    expect(
        attrs.method in known,
        f"{who} requires a method of {', '.join(known)}, got {attrs.method!r}",
    )
    expect(
        attrs.padding_mode in PADDING_MODES,
        f"{who} requires a padding_mode of {', '.join(PADDING_MODES)}, got {attrs.padding_mode!r}",
    )
    have, positions = shape_of_type(data), shape_of_type(grid)
    expect_dim(positions[0], have[0], who, "the batch of the grid")
    expect_dim(positions[1], rank - 2, who, "the coordinates of a place")
    return tensor((*have[:2], *positions[2:]), data.dtype)


def _dilation2d_type(attrs: Any, data: TensorType, weight: Tensor3) -> Type:
    """A tensor in the layout of `data`, with a position for each place of the window; of dtype
    `out_dtype`, or that of `data`."""
    who = "image.dilation2d"
    expect_layouts(attrs, who, ("NCHW", "IHW"), ("NHWC", "HWI"))
    have = axes_extents(shape_of_type(data), attrs.data_layout, who)
    kernel = axes_extents(shape_of_type(weight), attrs.kernel_layout, who)
    expect_dim(kernel["I"], have["C"], who, "the weight's channels")
    have |= window_counts(have, kernel, "HW", attrs.padding, attrs.strides, attrs.dilations)
    return tensor(shape_in_layout(have, attrs.data_layout), attrs.out_dtype or data.dtype)


def _schedule_dilation(attrs: Attrs, outs: Sequence[te.Tensor], target: object) -> te.Schedule:
    return topi.x86.schedule_pool(outs, attrs.data_layout)


def _composed_affine_grid(call: Call, arg_types: Sequence[Type]) -> RelayExpr:
    maps = call.args[0]
    batch, dtype = known_shape(maps, "image.affine_grid")[0], tensor_type_of(maps).dtype
    height, width = call.attrs.target_shape
    y, x = [np.linspace(-1, 1, n) if n > 1 else np.array([-1.0]) for n in (height, width)]
    positions = [(u, v, 1.0) for v, u in product(y, x)]
    rows = ops.reshape(maps, newshape=(batch * 2, 3))
    return ops.reshape(
        ops.nn.dense(rows, const(np.array(positions), dtype)), newshape=(batch, 2, height, width)
    )


@operator(
    "image.affine_grid",
    support_level=5,
    infer_type=_affine_grid_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(topi.image.affine_grid, "target_shape"),
    composition=_composed_affine_grid,
)
def affine_grid(data: Expr, target_shape: Ints) -> RelayExpr:
    """The grids that affine maps make of a regular one.

    Returns
    -------
    relay.Expr
        (batch, 2, height, width): x, then y.
    """


@operator(
    "image.grid_sample",
    support_level=5,
    infer_type=_grid_sample_type,
    fuse=OpPattern.INJECTIVE,
    compute=computed_by(
        topi.image.grid_sample, "method", "layout", "padding_mode", "align_corners"
    ),
    composition=composed_grid_sample,
)
def grid_sample(
    data: Expr,
    grid: Expr,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> RelayExpr:
    """Sample images at the positions of a grid."""


@operator(
    "image.dilation2d",
    support_level=5,
    infer_type=_dilation2d_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=computed_by(
        topi.image.dilation2d, "strides", "padding", "dilations", "data_layout", "kernel_layout",
        RESULT_DTYPE,
    ),
    schedules={
        **default_schedules(),
        "cpu": _schedule_dilation,
    },
)  # fmt: skip
def dilation2d(
    data: Expr,
    weight: Expr,
    strides: Spatial2 = (1, 1),
    padding: Padding2 = (0, 0),
    dilations: Spatial2 = (1, 1),
    data_layout: str = "NCHW",
    kernel_layout: str = "IHW",
    out_dtype: OptionalStr = "",
) -> RelayExpr:
    """Grey-scale dilation: the greatest sum of data and kernel over a window.

    Parameters
    ----------
    strides, padding, dilations : int or sequence of int
        Steps; borders, as 1, 2 or 4 (top, left, bottom, right) numbers; spacing of the kernel.
    data_layout : str
        "NCHW" with "IHW", or "NHWC" with "HWI".
    """
