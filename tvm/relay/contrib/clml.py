"""What Qualcomm's OpenCL ML takes: convolutions and dense layers with their ends, and single operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm._ffi import get_global_func
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.dataflow_pattern import DFPattern, is_constant, is_op, is_tuple_get_item, wildcard
from tvm.relay.expr import Call
from tvm.relay.transform import FoldConstant

from .offload import (
    Params,
    have_dtypes,
    is_depthwise,
    nearest_call,
    numbers,
    op_pattern,
    partition_for,
    rank_of,
    shape_of,
    take,
)
from .register import register_pattern_table

DEFAULT_VERSION = 2
FLOATS = ("float32", "float16")
UNARY = "nn.softmax nn.relu clip nn.batch_flatten reshape squeeze transpose"
BINARY = "add subtract multiply divide maximum minimum"


def is_clml_runtime_enabled() -> bool:
    """Whether the runtime of the library is linked."""
    return get_global_func("relay.op.is_clml_runtime_enabled", allow_missing=True) is not None


def clml_sdk_version() -> int:
    """The version of the library that is compiled for."""
    version = get_global_func("relay.get_clml_version", allow_missing=True)
    return DEFAULT_VERSION if version is None else int(version())


def preprocess_for_clml(mod: IRModule) -> IRModule:
    """The module with constants folded, as the library's functions want weights."""
    return FoldConstant()(mod)


def CLMLGenSrc(*_: Any) -> Any:
    """Source of the library's calls for a module; it is written by the code generator."""
    raise TVMError(
        "CLMLGenSrc requires the code generator relay.ext.clml, which is not in this release"
    )


def partition_for_clml(mod: IRModule, params: Params | None = None, **opts: Any) -> IRModule:
    """The module with what the library takes in functions for it; `params` are values of parameters of `main`."""
    if opts:
        raise TypeError(f"partition_for_clml has no options {sorted(opts)}")
    return partition_for(
        "clml", clml_pattern_table(), mod, params, prepare=[FoldConstant()], takes_data=False
    )


@register_pattern_table("clml")
def clml_pattern_table() -> list[Any]:
    """The composite functions, longest first."""
    return [
        ("clml.pad_conv2d", _convolution(with_pad=True), _check_padded),
        ("clml.conv2d", _convolution(), check_conv),
        ("clml.conv2d_transpose", _transposed(), check_conv_transpose),
        ("clml.dense2d", _dense(), _check_dense),
        ("clml.batch_norm", _batch_norm(), _check_batch_norm),
        *[(f"clml.{name.removeprefix('nn.')}", op_pattern(name), _float(name))
          for name in UNARY.split()],
        *[(f"clml.{name}", op_pattern(name, arity=2), _float_of_one_shape(name))
          for name in BINARY.split()],
        *[(f"clml.{name.removeprefix('nn.')}", op_pattern(name), _pool(name))
          for name in ("nn.avg_pool2d", "nn.max_pool2d",
                       "nn.global_avg_pool2d", "nn.global_max_pool2d")],
    ]  # fmt: skip


def _ended(value: DFPattern) -> DFPattern:
    """With a bias, a normalisation and an activation, each of which may be left out."""
    value = value.optional(lambda x: is_op("nn.bias_add")(x, is_constant()))
    value = value.optional(lambda x: is_op("add")(x, is_constant()))
    value = value.optional(
        lambda x: is_tuple_get_item(
            is_op("nn.batch_norm")(x, *[is_constant() for _ in range(4)]), 0
        )
    )
    return value.optional(is_op("nn.relu")).optional(is_op("clip"))


def _convolution(with_pad: bool = False) -> DFPattern:
    data = is_op("nn.pad")(wildcard(), is_constant()) if with_pad else wildcard()
    return _ended(is_op("nn.conv2d")(data, is_constant()))


def _transposed() -> DFPattern:
    return _ended(is_op("nn.conv2d_transpose")(wildcard(), is_constant()))


def _dense() -> DFPattern:
    found: DFPattern = is_op("nn.dense")(wildcard(), is_constant())
    found = found.optional(lambda x: is_op("add")(x, is_constant()))
    return found.optional(lambda x: is_op("nn.bias_add")(x, is_constant()))


def _batch_norm() -> DFPattern:
    return is_tuple_get_item(
        is_op("nn.batch_norm")(wildcard(), *[is_constant() for _ in range(4)]), 0
    )


def check_conv(found: RelayExpr) -> bool:
    """Whether the convolution of a match is in NCHW, of one group or depthwise."""
    conv = nearest_call(_value(found), "nn.conv2d")
    attrs = conv.attrs
    layouts = str(attrs.data_layout), str(attrs.kernel_layout)
    return (
        layouts == ("NCHW", "OIHW")
        and have_dtypes(conv, *FLOATS)
        and shape_of(conv.args[0]) is not None
        and (int(attrs.groups) == 1 or is_depthwise(conv))
    )


def _check_padded(found: RelayExpr) -> bool:
    conv = nearest_call(_value(found), "nn.conv2d")
    pad = conv.args[0]
    is_pad = isinstance(pad, Call) and not any(numbers(pad.attrs.pad_width[1]))
    return is_pad and not any(numbers(conv.attrs.padding)) and check_conv(found)


def check_conv_transpose(found: RelayExpr) -> bool:
    """Whether the transposed convolution of a match is in NCHW, of one group."""
    conv = nearest_call(_value(found), "nn.conv2d_transpose")
    attrs = conv.attrs
    return (
        str(attrs.data_layout) == "NCHW"
        and str(attrs.kernel_layout) in ("OIHW", "IOHW")
        and have_dtypes(conv, *FLOATS)
        and int(attrs.groups) == 1
    )


def _value(found: RelayExpr) -> RelayExpr:
    """What is below a field of a normalisation's result."""
    value: RelayExpr = getattr(found, "tuple_value", found)
    while isinstance(value, Call) and len(value.args) and hasattr(value.args[0], "tuple_value"):
        value = value.args[0].tuple_value
    return value


def _check_dense(found: RelayExpr) -> bool:
    dense = nearest_call(found, "nn.dense")
    return have_dtypes(dense, *FLOATS) and rank_of(dense.args[0]) == 2


def _check_batch_norm(found: RelayExpr) -> bool:
    call = nearest_call(_value(found), "nn.batch_norm")
    return int(call.attrs.axis) == 1 and have_dtypes(call, *FLOATS) and rank_of(call.args[0]) == 4


def _float(name: str) -> Callable[[RelayExpr], bool]:
    return lambda found: have_dtypes(nearest_call(found, name), *FLOATS)


def _float_of_one_shape(name: str) -> Callable[[RelayExpr], bool]:
    def check(found: RelayExpr) -> bool:
        call = nearest_call(found, name)
        left, right = (shape_of(arg) for arg in call.args)
        return left is not None and left == right and have_dtypes(call, *FLOATS)

    return check


def _pool(name: str) -> Callable[[RelayExpr], bool]:
    def check(found: RelayExpr) -> bool:
        call = nearest_call(found, name)
        dilation = numbers(getattr(call.attrs, "dilation", (1, 1)))
        is_plain = str(call.attrs.layout) == "NCHW" and set(dilation) == {1}
        return is_plain and have_dtypes(call, *FLOATS)

    return check


take("clml", "nn.upsampling nn.depth_to_space", lambda call: have_dtypes(call, *FLOATS))
