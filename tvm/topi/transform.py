"""Operators that move elements, under the classic module name."""

from __future__ import annotations

from .creation import arange, ndarray_size, shape
from .indexing import gather, gather_nd, one_hot, take, trilu, where
from .joining import concatenate, meshgrid, repeat, split, stack, tile
from .layout import layout_transform
from .nn.dense.compute import matmul
from .shaping import expand_dims, flip, reshape, squeeze, transpose
from .slicing import strided_slice

__all__ = [
    "arange",
    "concatenate",
    "expand_dims",
    "flip",
    "gather",
    "gather_nd",
    "layout_transform",
    "matmul",
    "meshgrid",
    "ndarray_size",
    "one_hot",
    "repeat",
    "reshape",
    "shape",
    "split",
    "squeeze",
    "stack",
    "strided_slice",
    "take",
    "tile",
    "transpose",
    "trilu",
    "where",
]
