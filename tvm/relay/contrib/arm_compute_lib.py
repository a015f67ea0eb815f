"""What Arm's Compute Library takes: composite functions of products and pools, and single operators.

The library itself is not there: a build of what is partitioned asks for its code generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm._ffi import get_global_func
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.dataflow_pattern import (
    DFPattern,
    is_constant,
    is_expr,
    is_op,
    is_tuple,
    wildcard,
)
from tvm.relay.expr import Call, const

from .offload import (
    Params,
    dtype_of,
    have_dtypes,
    is_depthwise,
    nearest_call,
    numbers,
    partition_for,
    rank_of,
    shape_of,
    take,
)
from .register import register_pattern_table

NAME = "arm_compute_lib"
INTEGERS = ("uint8", "int8")


def is_arm_compute_runtime_enabled() -> bool:
    """Whether the runtime of the library is linked."""
    enabled = get_global_func("relay.op.is_arm_compute_runtime_enabled", allow_missing=True)
    return enabled is not None and bool(enabled())


def partition_for_arm_compute_lib(
    mod: IRModule,
    params: Params | None = None,
    disabled_ops: Sequence[str] = ("concatenate",),
    **opts: Any,
) -> IRModule:
    """The module with what the library takes in functions for it, one an operator.

    Parameters
    ----------
    params : values of parameters of `main`, by name; weights must be constants.
    disabled_ops : operators that stay.
    """
    if opts:
        raise TypeError(f"partition_for_arm_compute_lib has no options {sorted(opts)}")
    return partition_for(
        NAME,
        arm_compute_lib_pattern_table(disabled_ops),
        mod,
        params,
        is_merged=False,
        takes_data=False,
    )


@register_pattern_table(NAME)
def arm_compute_lib_pattern_table(disabled_ops: Sequence[str] = ("concatenate",)) -> list[Any]:
    """The composite functions, longest first."""
    table: list[Any] = [
        (f"{NAME}.conv2d", _conv2d(), lambda e: conv2d(nearest_call(e, "nn.conv2d"))),
        (f"{NAME}.qnn_conv2d", _qnn_conv2d(), lambda e: qnn_conv2d(nearest_call(e, "qnn.conv2d"))),
        (f"{NAME}.dense", _dense(), lambda e: dense(nearest_call(e, "nn.dense"))),
        (f"{NAME}.qnn_dense", _qnn_dense(), lambda e: qnn_dense(nearest_call(e, "qnn.dense"))),
        (f"{NAME}.avg_pool2d", _avg_pool2d(), _is_integer_pool),
        (f"{NAME}.l2_pool2d", _l2_pool2d(), _is_float_pool),
    ]
    if "concatenate" not in disabled_ops:
        whole = is_op("concatenate")(is_tuple(None))
        table.append((f"{NAME}.concatenate", whole, _is_concatenation))
    return table


def _conv2d() -> DFPattern:
    data = is_op("nn.pad")(wildcard(), wildcard()) | wildcard()
    found = is_op("nn.conv2d")(data, is_constant())
    return found.optional(lambda x: is_op("nn.bias_add")(x, is_constant())).optional(
        is_op("nn.relu")
    )


def _qnn_conv2d() -> DFPattern:
    data = is_op("nn.pad")(wildcard(), wildcard()) | wildcard()
    found = is_op("qnn.conv2d")(data, *[is_constant() for _ in range(5)])
    ended = found.optional(lambda x: is_op("nn.bias_add")(x, is_constant())).optional(
        is_op("nn.relu")
    )
    return is_op("qnn.requantize")(ended, *[wildcard() for _ in range(4)])


def _dense() -> DFPattern:
    found = is_op("nn.dense")(wildcard(), is_constant())
    return found.optional(lambda x: is_op("nn.bias_add")(x, is_constant()))


def _qnn_dense() -> DFPattern:
    found = is_op("qnn.dense")(wildcard(), *[is_constant() for _ in range(5)])
    ended = found.optional(lambda x: is_op("nn.bias_add")(x, is_constant()))
    return is_op("qnn.requantize")(ended, *[wildcard() for _ in range(4)])


def _avg_pool2d() -> DFPattern:
    wide = is_op("cast")(wildcard())
    pooled = is_op("nn.avg_pool2d")(wide) | is_op("nn.global_avg_pool2d")(wide)
    return is_op("cast")(pooled)


def _l2_pool2d() -> DFPattern:
    square = is_op("power")(wildcard(), is_expr(const(2.0)))
    return is_op("sqrt")(is_op("nn.avg_pool2d")(square))


def conv2d(call: Call) -> bool:
    """Whether a convolution is of float32 in NHWC, depthwise or of one group."""
    attrs = call.attrs
    return (
        _is_nhwc(call)
        and str(attrs.out_dtype) in ("float32", "")
        and have_dtypes(call, "float32")
        and (int(attrs.groups) == 1 or _is_supported_depthwise(call))
    )


def qnn_conv2d(call: Call) -> bool:
    """Whether a quantised convolution is of 8 bits in NHWC, depthwise or of one group."""
    attrs = call.attrs
    return (
        _is_nhwc(call)
        and str(attrs.out_dtype) in ("int32", "")
        and dtype_of(call.args[0]) in INTEGERS
        and dtype_of(call.args[1]) in INTEGERS
        and (int(attrs.groups) == 1 or _is_supported_depthwise(call))
    )


def _is_nhwc(call: Call) -> bool:
    return str(call.attrs.data_layout) == "NHWC"


def _is_supported_depthwise(call: Call) -> bool:
    """Kernels of the library: of sides 3 and 5 and as many results as channels, steps of 1 or 2 and no gaps."""
    shape = shape_of(call.args[1])
    layout = str(call.attrs.kernel_layout)
    if shape is None or not is_depthwise(call):
        return False
    size = shape[layout.index("H")], shape[layout.index("W")]
    strides = set(numbers(call.attrs.strides))
    return (
        size in ((3, 3), (5, 5))
        and strides in ({1}, {2})
        and set(numbers(call.attrs.dilation)) == {1}
        and int(call.attrs.channels) == int(call.attrs.groups)
    )


def dense(call: Call) -> bool:
    """Whether a dense layer is of float32."""
    return have_dtypes(call, "float32") and str(call.attrs.out_dtype) in ("float32", "")


def qnn_dense(call: Call) -> bool:
    """Whether a quantised dense layer is of 8 bits."""
    return (
        dtype_of(call.args[0]) in INTEGERS
        and dtype_of(call.args[1]) in INTEGERS
        and str(call.attrs.out_dtype) in ("int32", "")
    )


def _is_integer_pool(found: RelayExpr) -> bool:
    pool = nearest_call(found, "nn.avg_pool2d", "nn.global_avg_pool2d")
    narrow = dtype_of(found)
    source = pool.args[0]
    return (
        isinstance(source, Call)
        and narrow in INTEGERS
        and dtype_of(source.args[0]) == narrow
        and dtype_of(source) == "int32"
        and str(pool.attrs.layout) == "NHWC"
        and _has_no_gaps(pool)
    )


def _is_float_pool(found: RelayExpr) -> bool:
    pool = nearest_call(found, "nn.avg_pool2d")
    return have_dtypes(pool, "float32") and str(pool.attrs.layout) == "NHWC" and _has_no_gaps(pool)


def _has_no_gaps(pool: Call) -> bool:
    return set(numbers(getattr(pool.attrs, "dilation", (1, 1)))) == {1}


def _is_concatenation(found: RelayExpr) -> bool:
    call = nearest_call(found, "concatenate")
    return rank_of(call) <= 4 and have_dtypes(call, "float32", *INTEGERS)


def _is_max_pool(call: Call) -> bool:
    return (
        str(call.attrs.layout) == "NHWC"
        and have_dtypes(call, "float32", *INTEGERS)
        and _has_no_gaps(call)
    )


def _is_avg_pool(call: Call) -> bool:
    return str(call.attrs.layout) == "NHWC" and have_dtypes(call, "float32") and _has_no_gaps(call)


def _is_sum_of_equal_shapes(call: Call) -> bool:
    left, right = call.args[:2]
    return shape_of(left) == shape_of(right) is not None and dtype_of(left) == dtype_of(right)


def _is_float_sum(call: Call) -> bool:
    return _is_sum_of_equal_shapes(call) and dtype_of(call) == "float32"


def _is_integer_sum(call: Call) -> bool:
    return _is_sum_of_equal_shapes(call) and dtype_of(call) in INTEGERS


def _is_simple(call: Call) -> bool:
    return have_dtypes(call, "float32", *INTEGERS)


take(NAME, "reshape", _is_simple)
take(NAME, "nn.max_pool2d nn.global_max_pool2d", _is_max_pool)
take(NAME, "nn.avg_pool2d nn.global_avg_pool2d", _is_avg_pool)
take(NAME, "maximum", lambda call: have_dtypes(call, "float32"))
take(NAME, "add", _is_float_sum)
take(NAME, "qnn.add", _is_integer_sum)
