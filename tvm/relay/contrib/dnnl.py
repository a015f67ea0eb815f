"""What oneDNN takes: operators, and composite functions of a convolution or dense layer and its end.

nn.relu(add(add(nn.conv2d(%x, w), b), %y))   ->   fn (.., Composite="dnnl.conv2d_bias_sum_relu")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op, register_op_attr
from tvm.ir.transform import PassContext, Sequential
from tvm.relay.dataflow_pattern import (
    DFPattern,
    DFPatternCallback,
    is_constant,
    is_op,
    rewrite,
    wildcard,
)
from tvm.relay.dataflow_pattern.rewrite import NodeMap
from tvm.relay.expr import Call, Constant
from tvm.relay.function import Function
from tvm.relay.op.nn.normalization import layer_norm
from tvm.relay.op.registry import ops
from tvm.relay.program import bind_params_by_name
from tvm.relay.transform import (
    AnnotateTarget,
    CanonicalizeOps,
    FoldConstant,
    FoldScaleAxis,
    InferType,
    InlineCompilerFunctionsBoundTo,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    SimplifyExpr,
    SimplifyInference,
)
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import post_order
from tvm.runtime.ndarray import NDArray
from tvm.target.cpu_features import host_feature_set

from .dnnl_quantized import PRODUCTS as QUANTIZED
from .dnnl_quantized import quantized_table
from .dnnl_rewrite import alter_conv as alter_conv  # by their classic paths
from .dnnl_rewrite import alter_conv_transpose as alter_conv_transpose
from .dnnl_rewrite import gelu_pattern
from .dnnl_rewrite import legalize_group_conv as legalize_group_conv
from .dnnl_rewrite import legalize_qnn_for_dnnl as legalize_qnn_for_dnnl
from .dnnl_rewrite import (
    rewrite_dense_bias_gelu_reshape_last as rewrite_dense_bias_gelu_reshape_last,
)
from .register import register_pattern_table

TRANSPOSED = ("nn.conv2d_transpose", "nn.conv3d_transpose")
CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", *TRANSPOSED)
HEAVY = (*CONVOLUTIONS, "nn.dense", "nn.batch_matmul", "nn.layer_norm", *QUANTIZED)
ACTIVATIONS = ("nn.relu", "tanh", "sigmoid", "clip", "gelu", "swish")
POINTWISE = ("abs", "clip", "exp", "log", "nn.leaky_relu", "nn.relu", "round", "sigmoid", "sqrt", "tanh")  # fmt: skip
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
POOLS = ("nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool2d", "nn.avg_pool3d")
GLOBAL_POOLS = ("nn.global_max_pool2d", "nn.global_avg_pool2d")


def _register_external_op_helper(op_name: str, supported: Any = True) -> Any:
    """Set the attribute `target.dnnl` of an operator to a truth value or a function of the call."""
    check = supported if callable(supported) else lambda call: supported and is_plain(call)
    return register_op_attr(op_name, "target.dnnl", check)


def is_plain(call: Call) -> bool:
    """Whether the tensors of a call are of one type, float32 or bfloat16, and of static shapes that are not empty."""
    kinds = {t.dtype for t in _tensors(call)}
    return len(kinds) == 1 and kinds <= _element_types()


def is_product_supported(call: Call) -> bool:
    """As `is_plain`; the result of products of bfloat16 may be float32, in which they are summed."""
    found = [t.dtype for t in _tensors(call)]
    kinds = set(found[1:])
    return len(kinds) == 1 and kinds <= _element_types() and found[0] in {"float32", *kinds}


def _tensors(call: Call) -> list[Any]:
    """The types of the result and the operands; none if oneDNN does not take their shapes."""
    types = [call.checked_type, *[a.checked_type for a in call.args]]
    tensors = [t for ty in types for t in getattr(ty, "fields", (ty,))]
    is_static = all(
        [not t.is_dynamic and len(t.shape) <= 5 and 0 not in t.concrete_shape for t in tensors]
    )
    return tensors if is_static and len(call.checked_type.shape) > 0 else []


def _element_types() -> set[str]:
    """What oneDNN computes with: bfloat16 on processors that have wide vectors of words."""
    return {"float32", "bfloat16"} if "avx512bw" in host_feature_set() else {"float32"}


def is_convolution_supported(call: Call) -> bool:
    """Whether oneDNN knows a convolution's layouts."""
    attrs = call.attrs
    data, kernel = str(attrs.data_layout), str(attrs.kernel_layout)
    return (
        is_product_supported(call)
        and set(data) <= set("NCDHW")
        and set(kernel) <= set("OIDHW")
        and str(attrs.out_layout) in ("", data)
    )


def is_pool_supported(call: Call) -> bool:
    """Whether oneDNN computes a pool as we do."""
    attrs = call.attrs
    counts_padding = getattr(attrs, "count_include_pad", False) and attrs.ceil_mode
    return (
        is_plain(call)
        and set(str(attrs.layout)) <= set("NCDHW")
        and all([int(d) == 1 for d in attrs.dilation])
        and not counts_padding
    )


def is_binary_supported(call: Call) -> bool:
    """Whether only the second operand is broadcast."""
    return is_plain(call) and _shape(call.args[0]) == _shape(call)


def is_layer_norm_supported(call: Call) -> bool:
    """Whether the last axis is normalised, scaled and shifted."""
    rank = len(_shape(call.args[0]))
    return (
        is_plain(call)
        and call.checked_type.dtype == "float32"
        and int(call.attrs.axis) % rank == rank - 1
        and bool(call.attrs.center)
        and bool(call.attrs.scale)
    )


for _name in CONVOLUTIONS:
    _register_external_op_helper(_name, is_convolution_supported)
for _name in POOLS:
    _register_external_op_helper(_name, is_pool_supported)
for _name in BINARY:
    _register_external_op_helper(_name, is_binary_supported)
for _name in (*POINTWISE, *GLOBAL_POOLS, "nn.softmax", "concatenate"):
    _register_external_op_helper(_name)
for _name in ("nn.dense", "nn.batch_matmul"):
    _register_external_op_helper(_name, is_product_supported)
_register_external_op_helper("nn.layer_norm", is_layer_norm_supported)


def _ended(
    value: DFPattern, with_bias: bool, with_sum: bool, with_eltwise: str | None
) -> DFPattern:
    if with_bias:
        bias = wildcard()
        value = is_op("add")(value, bias) | is_op("nn.bias_add")(value, bias)
    if with_sum:
        value = is_op("add")(value, wildcard())
    if with_eltwise is None:
        return value
    if with_eltwise == "swish":
        return is_op("multiply")(value, is_op("sigmoid")(value))
    if with_eltwise == "gelu":
        return gelu_pattern(value)
    return is_op(with_eltwise)(value)


def make_conv_pattern(
    conv_name: str, with_bias: bool = True, with_eltwise: str | None = None
) -> DFPattern:
    """A convolution, with a bias and an activation after it."""
    return _ended(is_op(conv_name)(wildcard(), wildcard()), with_bias, False, with_eltwise)


def make_conv_bias_sum_relu_pattern(conv_type: str, has_relu: bool = True) -> DFPattern:
    """A convolution with a bias, to which another tensor is added."""
    conv = is_op(conv_type)(wildcard(), wildcard())
    return _ended(conv, True, True, "nn.relu" if has_relu else None)


def make_dense_pattern(with_bias: bool = True, with_eltwise: str | None = None) -> DFPattern:
    """A dense layer, with a bias and an activation after it."""
    return _ended(is_op("nn.dense")(wildcard(), wildcard()), with_bias, False, with_eltwise)


def make_dense_bias_sum_pattern() -> DFPattern:
    """A dense layer with a bias, to which another tensor is added."""
    return _ended(is_op("nn.dense")(wildcard(), wildcard()), True, True, None)


def make_dnnl_pattern(op_name: str, with_bias: bool, with_eltwise: str | None) -> Any:
    """The entry of a pattern table for an operator and its end."""
    name = f"dnnl.{op_name.removeprefix('nn.')}{'_bias' if with_bias else ''}"
    if with_eltwise is not None:
        name += f"_{with_eltwise.split('.')[-1]}"
    make = make_dense_pattern if op_name == "nn.dense" else _conv_maker(op_name)
    return name, make(with_bias, with_eltwise), _check(op_name, with_bias, False, with_eltwise)


def _conv_maker(op_name: str) -> Callable[[bool, str | None], DFPattern]:
    return lambda with_bias, with_eltwise: make_conv_pattern(op_name, with_bias, with_eltwise)


@register_pattern_table("dnnl")
def pattern_table() -> list[Any]:
    """The composite functions, longest first."""
    table: list[Any] = quantized_table()
    bare: list[Any] = []  # after those with a bias
    for conv in CONVOLUTIONS:
        name = f"dnnl.{conv.removeprefix('nn.')}_bias_sum"
        with_relu = make_conv_bias_sum_relu_pattern(conv)
        table.append((f"{name}_relu", with_relu, _check(conv, True, True, "nn.relu")))
        without = make_conv_bias_sum_relu_pattern(conv, False)
        table.append((name, without, _check(conv, True, True)))
        for eltwise in ("nn.relu", None):
            summed = _ended(is_op(conv)(wildcard(), wildcard()), False, True, eltwise)
            end = "_sum_relu" if eltwise else "_sum"
            bare.append(
                (name.removesuffix("_bias_sum") + end, summed, _check(conv, False, True, eltwise))
            )
    dense = make_dense_bias_sum_pattern()
    table.append(("dnnl.dense_bias_sum", dense, _check("nn.dense", True, True)))
    for with_bias in (True, False):
        for activation in ACTIVATIONS:
            table += [
                make_dnnl_pattern(op, with_bias, activation) for op in (*CONVOLUTIONS, "nn.dense")
            ]
    table += bare
    return table + [make_dnnl_pattern(op, True, None) for op in (*CONVOLUTIONS, "nn.dense")]


def _check(
    op_name: str, with_bias: bool, with_sum: bool, with_eltwise: str | None = None
) -> Callable[[RelayExpr], bool]:
    """Whether the operands of a match are what the composite function's name says."""

    def is_root(node: RelayExpr) -> bool:
        return isinstance(node, Call) and node.op is Op.get(op_name)

    def is_end(node: RelayExpr) -> bool:
        return calls(node, ops.add, ops.nn.bias_add) and any([is_root(a) for a in node.args])

    def check(found: RelayExpr) -> bool:
        value = _before_activation(found, with_eltwise)
        ends = [value]
        if with_sum:
            if any([_shape(a) != _shape(value) for a in value.args]):
                return False
            ends = [a for a in value.args if (is_end if with_bias else is_root)(a)]
        for end in ends:
            roots = [a for a in end.args if is_root(a)] if with_bias else [end]
            if len(roots) != 1 or not roots[0].op.get_attr("target.dnnl")(roots[0]):
                return False
            if with_bias and not _is_bias(end, roots[0]):
                return False
        return True

    return check


def _before_activation(found: Any, with_eltwise: str | None) -> Any:
    """What the activation at the end of a match takes."""
    if with_eltwise is None:
        return found
    if with_eltwise == "swish":
        a, b = found.args
        return b if calls(a, ops.sigmoid) and a.args[0] is b else a
    if with_eltwise == "gelu":
        while not calls(found, ops.erf):
            found = next(a for a in found.args if _holds_erf(a))
        scaled = found.args[0]
        assert isinstance(scaled, Call)
        return next(a for a in scaled.args if not isinstance(a, Constant))
    return found.args[0]


def _holds_erf(expr: RelayExpr, depth: int = 4) -> bool:
    if calls(expr, ops.erf):
        return True
    if depth == 0 or not isinstance(expr, Call) or not calls(expr, ops.add, ops.multiply):
        return False
    return any([_holds_erf(a, depth - 1) for a in expr.args])


def _is_bias(end: Call, root: Call) -> bool:
    """Whether `end` adds one number a channel to the result of `root`."""
    other = next(a for a in end.args if a is not root)
    shape, result = _shape(other), _shape(end)
    layout = str(getattr(root.attrs, "data_layout", "")) or "*" * (len(result) - 1) + "C"
    axis = layout.index("C")
    if calls(end, ops.nn.bias_add):
        return int(end.attrs.axis) % len(result) == axis
    wanted = tuple(n if i == axis else 1 for i, n in enumerate(result))
    return (1,) * (len(result) - len(shape)) + shape == wanted and result == _shape(root)


def _shape(expr: RelayExpr) -> tuple[int, ...]:
    shape: tuple[int, ...] = expr.checked_type.concrete_shape
    return shape


class LayerNormRewrite(DFPatternCallback):
    """(x - mean) / sqrt(mean of squares + epsilon) * scale + shift   ->   nn.layer_norm(x, ..)"""

    def __init__(self) -> None:
        super().__init__()
        self.data, self.gamma, self.beta = wildcard(), wildcard(), wildcard()
        self.epsilon = is_constant()
        centered = is_op("subtract")(self.data, is_op("mean")(self.data))
        square = is_op("power")(centered, is_constant()) | is_op("multiply")(centered, centered)
        variance = is_op("mean")(square) | is_op("variance")(self.data, is_op("mean")(self.data))
        root = is_op("sqrt")(is_op("add")(variance, self.epsilon))
        rsqrt = is_op("rsqrt")(is_op("add")(variance, self.epsilon))
        normal = is_op("divide")(centered, root) | is_op("multiply")(centered, rsqrt)
        self.pattern = is_op("add")(is_op("multiply")(normal, self.gamma), self.beta)

    def callback(self, pre: RelayExpr, post: RelayExpr, node_map: NodeMap) -> RelayExpr:
        data, gamma, beta = (node_map[p][0] for p in (self.data, self.gamma, self.beta))
        epsilon = node_map[self.epsilon][0]
        assert isinstance(epsilon, Constant)
        if any(not _is_row(e) for e in (gamma, beta)) or not _is_over_last_axis(pre, data):
            return post
        return layer_norm(data, gamma, beta, axis=-1, epsilon=float(epsilon.data.numpy()))


def _is_row(expr: RelayExpr) -> bool:
    return isinstance(expr, Constant) and len(expr.data.shape) == 1


def _is_over_last_axis(pre: RelayExpr, data: RelayExpr) -> bool:
    means = [n for n in post_order(pre) if isinstance(n, Call) and n.op is ops.mean]
    near = [n for n in means if n.args[0] is data] or means
    axes = near[-1].attrs.axis
    rank = len(pre.checked_type.shape)
    return axes is not None and [int(a) % rank for a in axes] == [rank - 1]


def rewrite_layer_norm(mod: IRModule) -> IRModule:
    """The module with layer norms that importers wrote out as single operators."""
    mod["main"] = rewrite(LayerNormRewrite(), mod["main"])
    return InferType()(mod)


def is_valid_subgraph(body: RelayExpr) -> bool:
    """Whether an expression has an operator that is worth a call of oneDNN."""
    found = [n.op.name for n in post_order(body) if isinstance(n, Call) and isinstance(n.op, Op)]
    return not set(HEAVY).isdisjoint(found)


def prune_dnnl_subgraphs(mod: IRModule) -> IRModule:
    """The module with the functions for oneDNN put back that have no heavy operator.

    If there is one function beside `main`, it stays: the whole program is for oneDNN then.
    """
    if len(mod.functions) <= 2:
        return mod
    light: list[GlobalVar] = [
        gvar
        for gvar, func in mod.functions.items()
        if isinstance(func, Function)
        and func.attrs.get("Compiler") == "dnnl"
        and not is_valid_subgraph(func.body)
    ]
    return InlineCompilerFunctionsBoundTo(light)(mod) if light else mod


def partition_for_dnnl(
    mod: IRModule,
    params: Mapping[str, NDArray | np.ndarray] | None = None,
    alter_layout: bool | str = True,
    prune_subgraphs: bool | str = True,
) -> IRModule:
    """The module with all that oneDNN takes in functions for it.

    Parameters
    ----------
    params : values of parameters of `main`, by name.
    alter_layout : let oneDNN choose the layouts between its operators.
    prune_subgraphs : leave to us the parts without a heavy operator.

    The last two may be strings of a command line, such as `"0"`: `--target "dnnl -alter_layout=0, llvm"`.
    """
    may_alter, may_prune = [_as_bool(o) for o in (alter_layout, prune_subgraphs)]
    if params:
        mod = mod.clone()
        mod["main"] = bind_params_by_name(mod["main"], params)
    prepare = [
        InferType(),
        SimplifyInference(),
        FoldConstant(),
        CanonicalizeOps(),
        FoldScaleAxis(),
        FoldConstant(),
        SimplifyExpr(),
        FoldConstant(),
    ]
    # all of them, however much is optimised around oneDNN
    current = PassContext.current()
    with PassContext(3, current.required_pass, current.disabled_pass, config=current.config):
        mod = rewrite_layer_norm(Sequential(prepare, name="dnnl.prepare")(mod))
    divide = [
        MergeComposite(pattern_table()),
        AnnotateTarget("dnnl"),
        MergeCompilerRegions(),
        PartitionGraph(),
    ]
    mod = Sequential(divide, name="dnnl.partition")(mod)
    if may_prune:
        mod = prune_dnnl_subgraphs(mod)
    return mod if may_alter else _with_plain_layouts(mod)


def _as_bool(option: bool | str) -> bool:
    texts = {"0": False, "false": False, "1": True, "true": True, "": True}
    if not isinstance(option, str):
        return bool(option)
    if option.lower() not in texts:
        raise TVMError(f"an option of dnnl must be 0 or 1, got {option!r}")
    return texts[option.lower()]


def _with_plain_layouts(mod: IRModule) -> IRModule:
    functions = {
        gvar: func.with_attr("alter_layout", 0) if func.attrs.get("Compiler") == "dnnl" else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)
