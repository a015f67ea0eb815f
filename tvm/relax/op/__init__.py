"""The operators of relax."""

from tvm.ir.op import Op
from tvm.support.later import provide as _provide

from . import (
    _op_gradient,
    builtin,
    ccl,
    distributed,
    grad,
    image,
    inspect,
    memory,
    nn,
    op_attrs,
    vm,
)
from .base import (
    assert_op,
    call_builtin_with_ctx,
    call_dps_packed,
    call_inplace_packed,
    call_pure_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
    hint_on_device,
    invoke_closure,
    invoke_pure_closure,
    make_closure,
    null_value,
    print,
    register_gradient,
    shape_of,
    shape_to_tensor,
    tensor_to_shape,
    to_vdevice,
)
from .binary import (
    add,
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    divide,
    equal,
    floor_divide,
    floor_mod,
    greater,
    greater_equal,
    left_shift,
    less,
    less_equal,
    log_add_exp,
    logical_and,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    not_equal,
    power,
    right_shift,
    subtract,
)
from .create import (
    arange,
    eye,
    eye_like,
    full,
    full_like,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from .datatype import astype, wrap_param
from .gather import gather_elements, gather_nd, index_tensor, one_hot
from .index import dynamic_strided_slice, strided_slice, take
from .joining import concat, meshgrid, split, stack
from .layouts import set_layout_rules
from .linear_algebra import einsum, linear, matmul, outer
from .manipulate import (
    broadcast_to,
    collapse_sum_like,
    collapse_sum_to,
    expand_dims,
    flatten,
    layout_transform,
    permute_dims,
    reshape,
    squeeze,
)
from .mask import masked_fill
from .mixed_precision import set_policies
from .qdq import dequantize, quantize
from .repeat import flip, repeat, tile
from .sampling import multinomial_from_uniform
from .scatter import index_put, scatter_elements, scatter_nd, slice_scatter
from .search import argmax, argmin, bucketize, where
from .set import nonzero, unique
from .sorting import argsort, sort, topk
from .statistical import cumprod, cumsum, max, mean, min, prod, std, sum, variance
from .ternary import ewise_fma
from .unary import (
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    bitwise_not,
    ceil,
    clip,
    cos,
    cosh,
    erf,
    exp,
    floor,
    isfinite,
    isinf,
    isnan,
    log,
    logical_not,
    negative,
    round,
    rsqrt,
    sigmoid,
    sign,
    sin,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)

get = Op.get
set_layout_rules()
set_policies()
_provide(
    "tvm.relax.op.manipulate",
    {
        name: f"{module}:{name}"
        for module, names in {
            "tvm.relax.op.gather": (
                "gather_elements", "gather_nd", "index_tensor", "one_hot",
            ),
            "tvm.relax.op.joining": ("concat", "meshgrid", "split", "stack"),
            "tvm.relax.op.repeat": ("flip", "repeat", "tile"),
            "tvm.relax.op.scatter": (
                "index_put", "scatter_elements", "scatter_nd", "slice_scatter",
            ),
        }.items()
        for name in names
    },
)  # fmt: skip
