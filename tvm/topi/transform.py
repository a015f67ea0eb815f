"""Operators that move elements, under the classic module name."""

from __future__ import annotations

from .creation import arange, ndarray_size, shape
from .element_writes import invert_permutation, sparse_to_dense, strided_set
from .indexing import adv_index, gather, gather_nd, one_hot, take, trilu, where
from .indexing import unravel as unravel_index
from .joining import concatenate, meshgrid, repeat, split, stack, tile
from .layout import layout_transform
from .products import matmul, tensordot
from .rewrites import take_legalize
from .sequence import matrix_set_diag, reverse_sequence, sequence_mask, sliding_window
from .shaping import expand_dims, expand_like, flip, reshape, squeeze, transpose
from .slicing import dynamic_strided_slice, strided_slice

__all__ = [
    "adv_index",
    "arange",
    "concatenate",
    "dynamic_strided_slice",
    "expand_dims",
    "expand_like",
    "flip",
    "gather",
    "gather_nd",
    "layout_transform",
    "invert_permutation",
    "matmul",
    "matrix_set_diag",
    "meshgrid",
    "ndarray_size",
    "one_hot",
    "repeat",
    "reshape",
    "reverse_sequence",
    "sequence_mask",
    "shape",
    "sliding_window",
    "sparse_to_dense",
    "split",
    "squeeze",
    "stack",
    "strided_set",
    "strided_slice",
    "take",
    "take_legalize",
    "tensordot",
    "tile",
    "transpose",
    "trilu",
    "unravel_index",
    "where",
]
