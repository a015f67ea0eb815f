"""The operator library: computes and schedules by family.

C = topi.nn.conv2d_nchw(A, W, 1, 1, 1)
with target:
    s = topi.x86.schedule_conv2d_nchw([C])
"""

from tvm.support.later import names_from_above as _names_from_above

from . import (
    arm_cpu,
    cpp,
    cpu,
    generic,
    image,
    linalg,
    nn,
    random,
    sparse,
    tag,
    tensor,
    testing,
    threads,
    transform,
    utils,
    vision,
    x86,
)
from .argument_checks import guarded
from .argwhere import argwhere
from .broadcast import *
from .creation import *
from .devices import *
from .einsum import einsum, einsum_extents, einsum_letters
from .element_writes import invert_permutation, slice_scatter, sparse_to_dense, strided_set
from .indexing import *
from .indexing import unravel as unravel_index
from .joining import *
from .layout import auto_scheduler_layout_transform, layout_transform
from .math import *
from .math import ceil_log2
from .products import matmul, tensordot
from .reduction import *
from .rewrites import erf_legalize, take_legalize
from .scan import cumprod, cumsum
from .scatter import index_put, scatter_elements, scatter_nd
from .searchsorted import searchsorted
from .sequence import matrix_set_diag, reverse_sequence, sequence_mask, sliding_window
from .shaping import *
from .signal import dft, stft
from .slicing import dynamic_strided_slice, strided_slice
from .sort import argsort, sort, topk
from .sparse_rows import sparse_fill_empty_rows, sparse_reshape
from .unique import unique
from .utils import get_const_tuple

globals().update(guarded(__name__, globals()))
__getattr__ = _names_from_above(__name__)
