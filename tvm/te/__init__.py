"""Tensor expressions: what is computed, and schedules of how."""

from tvm.tir.builtin import trace
from tvm.tir.index_map import IndexMap as _IndexMap
from tvm.tir.math_op import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    erf,
    exp,
    floor,
    fmod,
    if_then_else,
    isfinite,
    isinf,
    isnan,
    log,
    log2,
    log10,
    max_value,
    min_value,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    sigmoid,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    trunc,
)  # fmt: skip
from tvm.tir.op import (
    add,
    all,
    any,
    div,
    floordiv,
    floormod,
    indexdiv,
    indexmod,
    multiply,
    subtract,
    truncdiv,
    truncmod,
)  # fmt: skip
from tvm.tir.reduction import comm_reducer, max, min, sum

from . import _ffi_api, hybrid, schedule, tag, tensor, tensor_ops
from .autodiff import gradient
from .operation import (
    compute,
    const,
    create_prim_func,
    extern,
    extern_primfunc,
    placeholder,
    reduce_axis,
    scan,
    size_var,
    thread_axis,
    var,
)
from .schedule import Schedule, SpecializedCondition, Stage, create_schedule
from .tag import tag_scope
from .tensor import (
    ComputeOp,
    ExternOp,
    HybridOp,
    PlaceholderOp,
    ScanOp,
    Tensor,
    TensorComputeOp,
    TensorSlice,
)
from .tensor_intrin import decl_tensor_intrin

AXIS_SEPARATOR = _IndexMap.AXIS_SEPARATOR
