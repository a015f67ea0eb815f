"""Operators that move elements under the classic module name."""

from __future__ import annotations

from .advanced_indexing import (
    adv_index,
    invert_permutation,
    sparse_to_dense,
    strided_set,
    unravel_index,
)
from .broadcasting import broadcast_to, broadcast_to_like, collapse_sum_like, collapse_sum_to
from .creation import arange, full, full_like
from .distinct import argwhere, unique
from .indexing import (
    gather,
    gather_nd,
    one_hot,
    take,
    trilu,
    where,
)
from .joining import meshgrid, repeat, split, tile
from .scan import cumprod, cumsum
from .scatter import scatter_elements, scatter_nd
from .segments import segment_sum
from .sequence import matrix_set_diag, reverse_sequence, sequence_mask, sliding_window
from .shaping import (
    auto_scheduler_layout_transform,
    expand_dims,
    layout_transform,
    reshape,
    reshape_like,
    reverse,
    reverse_reshape,
    squeeze,
    transpose,
)
from .signal import dft, stft
from .slicing import slice_like, strided_slice
from .sparse import sparse_fill_empty_rows, sparse_reshape
from .unary import cast, cast_like, reinterpret

__all__ = [
    "adv_index", "arange", "argwhere", "auto_scheduler_layout_transform", "broadcast_to", "broadcast_to_like", "cast", "cast_like",
    "collapse_sum_like", "collapse_sum_to", "cumprod", "cumsum", "dft", "expand_dims", "full",
    "full_like", "gather", "gather_nd", "invert_permutation", "layout_transform", "matrix_set_diag",
    "meshgrid", "one_hot", "reinterpret", "repeat", "reshape", "reshape_like", "reverse",
    "reverse_reshape", "reverse_sequence", "scatter_elements", "scatter_nd", "segment_sum",
    "sequence_mask", "slice_like", "sliding_window", "sparse_fill_empty_rows", "sparse_reshape",
    "sparse_to_dense", "split", "squeeze", "stft", "strided_set", "strided_slice", "take", "tile",
    "transpose", "trilu", "unique", "unravel_index", "where",
]  # fmt: skip
