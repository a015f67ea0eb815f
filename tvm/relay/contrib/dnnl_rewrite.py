"""Changes of a program that users apply themselves before they give parts of it to oneDNN.

gelu(add(reshape(nn.dense(x, w)), b))   ->   reshape(gelu(add(nn.dense(x, w), b)))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.dataflow_pattern import (
    DFPattern,
    DFPatternCallback,
    is_constant,
    is_op,
    rewrite,
    wildcard,
)
from tvm.relay.dataflow_pattern.rewrite import NodeMap
from tvm.relay.expr import Constant
from tvm.relay.op.registry import ops
from tvm.relay.transform import InferType
from tvm.relay.traverse import post_order, rewrite_post_order


def gelu_pattern(value: DFPattern) -> DFPattern:
    """The forms in which importers write value * 0.5 * (1 + erf(value / sqrt(2)))."""
    scaled = is_op("divide")(value, is_constant()) | is_op("multiply")(value, is_constant())
    erf = is_op("add")(is_op("erf")(scaled), is_constant())
    half_first = is_op("multiply")(is_op("multiply")(value, is_constant()), erf)
    half_last = is_op("multiply")(is_op("multiply")(value, erf), is_constant())
    half_inside = is_op("multiply")(value, is_op("multiply")(erf, is_constant()))
    return half_first | half_last | half_inside


def legalize_group_conv(attrs: Any, inputs: Sequence[RelayExpr], types: Sequence[Any]) -> None:
    """For the attribute FTVMLegalize: nothing changes, oneDNN takes groups in plain layouts."""


def alter_conv(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], out_type: Any
) -> None:
    """For FTVMAlterOpLayout: nothing changes, oneDNN chooses layouts between its operators itself."""


alter_conv_transpose = alter_conv


def legalize_qnn_for_dnnl(mod: IRModule) -> IRModule:
    """The module as it is: the pattern table takes operators on quantised tensors as they are."""
    return mod


class DenseBiasGeluReshapeLast(DFPatternCallback):
    """Moves a reshape between a dense layer and its bias behind the bias, and the GELU after it."""

    def __init__(self, has_gelu: bool) -> None:
        super().__init__()
        self.dense = is_op("nn.dense")(wildcard(), wildcard())
        self.bias = wildcard()
        self.reshaped = is_op("reshape")(self.dense)
        self.biased = is_op("add")(self.reshaped, self.bias)
        self.pattern = gelu_pattern(self.biased) if has_gelu else self.biased

    def callback(self, pre: RelayExpr, post: RelayExpr, node_map: NodeMap) -> RelayExpr:
        dense, bias, biased = (node_map[p][0] for p in (self.dense, self.bias, self.biased))
        shape = _static_shape(pre)
        rows = _static_shape(dense)
        if shape is None or rows is None or _static_shape(bias) != rows[-1:]:
            return post
        if shape[-1] != rows[-1] or _static_shape(node_map[self.reshaped][0]) != shape:
            return post
        around = post_order(pre, is_opaque=lambda node: node is biased)
        if any([isinstance(node, Constant) and node.data.shape for node in around]):
            return post
        before = ops.add(dense, bias)
        moved = rewrite_post_order(post, lambda old, new: before if old is biased else new)
        return ops.reshape(moved, newshape=shape)


def rewrite_dense_bias_gelu_reshape_last(mod: IRModule) -> IRModule:
    """The module with biases and GELUs next to their dense layers."""
    for has_gelu in (True, False):
        mod["main"] = rewrite(DenseBiasGeluReshapeLast(has_gelu), mod["main"])
        mod = InferType()(mod)
    return mod


def _static_shape(expr: RelayExpr) -> tuple[int, ...] | None:
    found = expr.checked_type
    return None if found.is_dynamic else found.concrete_shape
