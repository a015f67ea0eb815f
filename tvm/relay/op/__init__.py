"""Relay's operators: one block each, exposed as `relay.add`, `relay.nn.conv2d` and so on."""

from tvm.ir.op import Op
from tvm.support.later import names_from_above

from . import (
    advanced_indexing,
    algorithm,
    annotation,
    broadcasting,
    call,
    creation,
    distinct,
    dyn,
    fixed_point,
    hints,
    image,
    indexing,
    joining,
    linalg,
    memory,
    nn,
    op,
    op_attrs,
    random,
    reduce,
    scan,
    scatter,
    segments,
    sequence,
    shaping,
    signal,
    slicing,
    sparse,
    vision,
    vm,
)

# isort: split
from .advanced_indexing import adv_index as adv_index
from .advanced_indexing import einsum as einsum
from .advanced_indexing import invert_permutation as invert_permutation
from .advanced_indexing import sparse_to_dense as sparse_to_dense
from .advanced_indexing import strided_set as strided_set
from .advanced_indexing import unravel_index as unravel_index
from .algorithm import argsort as argsort
from .algorithm import searchsorted as searchsorted
from .algorithm import sort as sort
from .algorithm import topk as topk
from .binary import add as add
from .binary import bitwise_and as bitwise_and
from .binary import bitwise_or as bitwise_or
from .binary import bitwise_xor as bitwise_xor
from .binary import divide as divide
from .binary import equal as equal
from .binary import floor_divide as floor_divide
from .binary import floor_mod as floor_mod
from .binary import greater as greater
from .binary import greater_equal as greater_equal
from .binary import left_shift as left_shift
from .binary import less as less
from .binary import less_equal as less_equal
from .binary import logical_and as logical_and
from .binary import logical_or as logical_or
from .binary import logical_xor as logical_xor
from .binary import maximum as maximum
from .binary import minimum as minimum
from .binary import mod as mod
from .binary import multiply as multiply
from .binary import not_equal as not_equal
from .binary import power as power
from .binary import right_shift as right_shift
from .binary import subtract as subtract
from .binary import trunc_divide as trunc_divide
from .binary import trunc_mod as trunc_mod
from .broadcasting import broadcast_to as broadcast_to
from .broadcasting import broadcast_to_like as broadcast_to_like
from .broadcasting import collapse_sum_like as collapse_sum_like
from .broadcasting import collapse_sum_to as collapse_sum_to
from .creation import arange as arange
from .creation import full as full
from .creation import full_like as full_like
from .creation import ndarray_size as ndarray_size
from .creation import ones as ones
from .creation import shape_of as shape_of
from .creation import zeros as zeros
from .distinct import argwhere as argwhere
from .distinct import unique as unique
from .fixed_point import fixed_point_multiply as fixed_point_multiply
from .fixed_point import fixed_point_multiply_per_axis as fixed_point_multiply_per_axis
from .hints import debug
from .hints import device_copy as device_copy
from .indexing import gather as gather
from .indexing import gather_nd as gather_nd
from .indexing import one_hot as one_hot
from .indexing import take as take
from .indexing import trilu as trilu
from .indexing import where as where
from .joining import concatenate as concatenate
from .joining import meshgrid as meshgrid
from .joining import repeat as repeat
from .joining import split as split
from .joining import stack as stack
from .joining import tile as tile
from .op import (
    OpPattern,
    register,
    register_alter_op_layout,
    register_broadcast_schedule,
    register_compute,
    register_convert_op_layout,
    register_fake_quantization_to_integer,
    register_gradient,
    register_infer_correct_layout,
    register_injective_schedule,
    register_legalize,
    register_mixed_precision_conversion,
    register_optional_fake_quantization_to_integer,
    register_pattern,
    register_schedule,
    register_shape_func,
    register_stateful,
    register_strategy,
)
from .op import get as get
from .reduce import *
from .scan import cumprod as cumprod
from .scan import cumsum as cumsum
from .scatter import scatter_elements as scatter_elements
from .scatter import scatter_nd as scatter_nd
from .segments import segment_sum as segment_sum
from .sequence import matrix_set_diag as matrix_set_diag
from .sequence import reverse_sequence as reverse_sequence
from .sequence import sequence_mask as sequence_mask
from .sequence import sliding_window as sliding_window
from .shaping import auto_scheduler_layout_transform as auto_scheduler_layout_transform
from .shaping import expand_dims as expand_dims
from .shaping import layout_transform as layout_transform
from .shaping import reshape as reshape
from .shaping import reshape_like as reshape_like
from .shaping import reverse as reverse
from .shaping import reverse_reshape as reverse_reshape
from .shaping import squeeze as squeeze
from .shaping import transpose as transpose
from .signal import dft as dft
from .signal import stft as stft
from .slicing import slice_like as slice_like
from .slicing import strided_slice as strided_slice
from .sparse import sparse_fill_empty_rows as sparse_fill_empty_rows
from .sparse import sparse_reshape as sparse_reshape
from .strategy import OpImplementation, OpSpecialization, OpStrategy
from .strategy import generic as _generic_strategies
from .strategy import x86 as _x86_strategies
from .unary import abs as abs
from .unary import acos as acos
from .unary import acosh as acosh
from .unary import asin as asin
from .unary import asinh as asinh
from .unary import atan as atan
from .unary import atanh as atanh
from .unary import bitwise_not as bitwise_not
from .unary import cast as cast
from .unary import cast_like as cast_like
from .unary import ceil as ceil
from .unary import clip as clip
from .unary import copy as copy
from .unary import cos as cos
from .unary import cosh as cosh
from .unary import erf as erf
from .unary import exp as exp
from .unary import fast_erf as fast_erf
from .unary import fast_exp as fast_exp
from .unary import fast_tanh as fast_tanh
from .unary import floor as floor
from .unary import isfinite as isfinite
from .unary import isinf as isinf
from .unary import isnan as isnan
from .unary import log as log
from .unary import log2 as log2
from .unary import log10 as log10
from .unary import logical_not as logical_not
from .unary import negative as negative
from .unary import ones_like as ones_like
from .unary import reinterpret as reinterpret
from .unary import round as round
from .unary import rsqrt as rsqrt
from .unary import sigmoid as sigmoid
from .unary import sign as sign
from .unary import sin as sin
from .unary import sinh as sinh
from .unary import sqrt as sqrt
from .unary import tan as tan
from .unary import tanh as tanh
from .unary import trunc as trunc
from .unary import zeros_like as zeros_like

__getattr__ = names_from_above(__name__)
