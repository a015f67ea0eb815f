"""What Arm's CMSIS-NN takes: quantised layers for microcontrollers.

qnn.requantize(nn.bias_add(qnn.conv2d(%x, w, ..), b), ..)   ->   fn (.., Composite="cmsis-nn.qnn_conv2d")
"""

from __future__ import annotations

from typing import Any

from tvm._ffi import get_global_func
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.dataflow_pattern import DFPattern, is_constant, is_op, wildcard
from tvm.relay.expr import Call

from .offload import (
    Params,
    dtype_of,
    is_depthwise,
    nearest_call,
    numbers,
    partition_for,
    scalar,
    shape_of,
)
from .register import register_pattern_table

NAME = "cmsis-nn"


def enabled() -> bool:
    """Whether there is a code generator for the library."""
    return get_global_func("relay.ext.cmsis-nn", allow_missing=True) is not None


def partition_for_cmsisnn(
    mod: IRModule, params: Params | None = None, mod_name: str = "default", **opts: Any
) -> IRModule:
    """The module with what the library takes in functions for it, one a layer.

    Parameters
    ----------
    params : values of parameters of `main`, by name; weights must be constants.
    mod_name : the beginning of the functions' names.
    opts : of the code generator, such as `mcpu`; they do not change what is taken.
    """
    return partition_for(NAME, pattern_table(), mod, params, is_merged=False, mod_name=mod_name)


@register_pattern_table(NAME)
def pattern_table() -> list[Any]:
    """The composite functions."""
    return [
        (f"{NAME}.qnn_conv2d", _conv2d(with_pad=True), _check_padded_conv2d),
        (f"{NAME}.qnn_conv2d", _conv2d(), _check_conv2d),
        (f"{NAME}.qnn_fully_connected", _dense(), _check_dense),
        (f"{NAME}.qnn_avg_pool2d", _avg_pool2d(), _check_avg_pool2d),
        (f"{NAME}.qnn_max_pool2d", _max_pool2d(), _check_max_pool2d),
        (f"{NAME}.qnn_mul", _binary("mul"), _check_binary),
        (f"{NAME}.qnn_add", _binary("add"), _check_binary),
        (f"{NAME}.qnn_softmax", _softmax(), _check_softmax),
    ]


def _requantized(value: DFPattern) -> DFPattern:
    """A sum with a bias, made narrow and clipped."""
    biased = value.optional(lambda x: is_op("nn.bias_add")(x, is_constant()))
    narrow = is_op("qnn.requantize")(biased, *[is_constant() for _ in range(4)])
    return narrow.optional(is_op("clip"))


def _conv2d(with_pad: bool = False) -> DFPattern:
    data = is_op("nn.pad")(wildcard(), is_constant()) if with_pad else wildcard()
    return _requantized(is_op("qnn.conv2d")(data, *[is_constant() for _ in range(5)]))


def _dense() -> DFPattern:
    return _requantized(is_op("qnn.dense")(wildcard(), *[is_constant() for _ in range(5)]))


def _avg_pool2d() -> DFPattern:
    pooled = is_op("nn.avg_pool2d")(is_op("cast")(wildcard()))
    return is_op("cast")(pooled).optional(is_op("clip"))


def _max_pool2d() -> DFPattern:
    return is_op("nn.max_pool2d")(wildcard()).optional(is_op("clip"))


def _binary(kind: str) -> DFPattern:
    found = is_op(f"qnn.{kind}")(wildcard(), wildcard(), *[is_constant() for _ in range(6)])
    return found.optional(is_op("clip"))


def _softmax() -> DFPattern:
    wide = is_op("qnn.dequantize")(wildcard(), is_constant(), is_constant())
    return is_op("qnn.quantize")(is_op("nn.softmax")(wide), is_constant(), is_constant())


def _has_byte_or_word(call: Call) -> bool:
    """The data's element type; weights of words are bytes all the same."""
    return dtype_of(call.args[0]) in ("int8", "int16") and dtype_of(call.args[1]) == "int8"


def _fits_bias(found: RelayExpr, root: Call) -> bool:
    """Whether the bias is as wide as the library's sums: 32 bits, and 64 over words."""
    wide = "int32" if dtype_of(root.args[0]) == "int8" else "int64"
    biased = _find(found, "nn.bias_add", root)
    return biased is None or dtype_of(biased.args[1]) in ("int32", wide)


def _find(found: RelayExpr, name: str, root: Call) -> Call | None:
    """The call of an operator between a match and its product, along first arguments."""
    node = found
    while isinstance(node, Call) and node is not root:
        if getattr(node.op, "name", None) == name:
            return node
        node = node.args[0]
    return None


def _check_conv2d(found: RelayExpr) -> bool:
    conv = nearest_call(found, "qnn.conv2d")
    attrs = conv.attrs
    layout = str(attrs.kernel_layout)
    is_deep = is_depthwise(conv)
    kernel = shape_of(conv.args[1])
    if kernel is None or str(attrs.data_layout) != "NHWC":
        return False
    return (
        _has_byte_or_word(conv)
        and str(attrs.out_dtype) in ("int32", "int64")
        and dtype_of(found) == dtype_of(conv.args[0])
        and layout in (("HWOI", "HWIO", "OHWI") if is_deep else ("HWIO", "OHWI"))
        and (int(attrs.groups) == 1 or is_deep)
        and _has_zero(conv.args[3])
        and _fits_bias(found, conv)
    )


def _check_padded_conv2d(found: RelayExpr) -> bool:
    """The padding, of rows and columns alone and with the data's zero, must be one of the library's."""
    conv = nearest_call(found, "qnn.conv2d")
    pad = conv.args[0]
    if not isinstance(pad, Call) or not _check_conv2d(found):
        return False
    widths = [numbers(width) for width in pad.attrs.pad_width]
    if len(widths) != 4 or any(widths[0]) or any(widths[3]):
        return False
    # the library has one number a side: those below and to the right may be one more
    is_even = all([0 <= after - before <= 1 for before, after in widths[1:3]])
    return is_even and not any(numbers(conv.attrs.padding)) and _is_zero_point(pad, conv)


def _is_zero_point(pad: Call, conv: Call) -> bool:
    value = scalar(pad.args[1])
    return value is not None and value == scalar(conv.args[2])


def _has_zero(expr: RelayExpr) -> bool:
    """Whether a zero point is 0."""
    return scalar(expr) == 0


def _check_dense(found: RelayExpr) -> bool:
    dense = nearest_call(found, "qnn.dense")
    return (
        _has_byte_or_word(dense)
        and str(dense.attrs.out_dtype) in ("int32", "int64")
        and dtype_of(found) == dtype_of(dense.args[0])
        and _has_zero(dense.args[3])
        and _fits_bias(found, dense)
    )


def _check_avg_pool2d(found: RelayExpr) -> bool:
    pool = nearest_call(found, "nn.avg_pool2d")
    wide = pool.args[0]
    return (
        isinstance(wide, Call)
        and str(pool.attrs.layout) == "NHWC"
        and dtype_of(wide) == "int32"
        and dtype_of(wide.args[0]) in ("int8", "int16")
        and dtype_of(found) == dtype_of(wide.args[0])
        and _is_one_image(pool)
    )


def _check_max_pool2d(found: RelayExpr) -> bool:
    pool = nearest_call(found, "nn.max_pool2d")
    return (
        str(pool.attrs.layout) == "NHWC"
        and dtype_of(pool.args[0]) in ("int8", "int16")
        and _is_one_image(pool)
    )


def _is_one_image(pool: Call) -> bool:
    shape = shape_of(pool.args[0])
    return shape is not None and shape[0] == 1


def _check_binary(found: RelayExpr) -> bool:
    call = nearest_call(found, "qnn.mul", "qnn.add")
    kinds = {dtype_of(call.args[0]), dtype_of(call.args[1]), dtype_of(call)}
    if len(kinds) != 1 or not kinds <= {"int8", "int16"}:
        return False
    shapes = [shape_of(arg) for arg in call.args[:2]]
    operands_are_constant = all([scalar(arg) is not None for arg in call.args[:2]])
    is_even = shapes[0] == shapes[1] or any([scalar(arg) is not None for arg in call.args[:2]])
    # the library's functions of words have no offsets
    is_offset_free = kinds == {"int8"} or all([_has_zero(call.args[i]) for i in (3, 5, 7)])
    return None not in shapes and is_even and not operands_are_constant and is_offset_free


def _check_softmax(found: RelayExpr) -> bool:
    if not isinstance(found, Call):
        return False
    softmax = found.args[0]
    if not isinstance(softmax, Call) or not isinstance(softmax.args[0], Call):
        return False
    data = softmax.args[0].args[0]
    scale, zero = scalar(found.args[1]), scalar(found.args[2])
    is_last = int(softmax.attrs.axis) in (-1, len(shape_of(data) or ()) - 1)
    # the results of the library's function are of this scale and zero point
    is_exact = (scale, zero) == (1 / 256, -128)
    return is_last and is_exact and dtype_of(data) == "int8" and dtype_of(found) == "int8"
