"""What mixed precision does with operators: gains from low precision, follows its arguments, or stays.

Operators without an entry are given the data types that the program says. What "always", "follow" and
"never" mean is relay's `Precision`; programs register others under ``TMixedPrecisionPolicy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.op import Op
from tvm.relax.expr import Call
from tvm.relay.op.registry import Precision
from tvm.support.dtype import DType

# classic numbers of policies, which programs register
POLICIES = (Precision.ALWAYS, Precision.FOLLOW, Precision.KEEP_FLOAT32)


def with_out_dtype(call: Call, dtype: DType) -> Call:
    """A call that gives results of a data type."""
    if call.attrs is None or "out_dtype" not in call.attrs:
        return call
    attrs = call.attrs.replace(out_dtype=dtype)
    return Call(call.op, call.args, attrs, call.sinfo_args, call.span)


def policy_of(call: Call) -> Precision:
    """What mixed precision does with a call."""
    if not isinstance(call.op, Op):
        return Precision.KEEP_FLOAT32
    given = call.op.get_attr("TMixedPrecisionPolicy")
    if given is not None:
        return POLICIES[int(given)]
    found = call.op.precision
    return found if isinstance(found, Precision) else Precision.KEEP_FLOAT32


def out_dtype_rule(op: Any) -> Callable[[Call, DType], Call]:
    """From a call of an operator that gains, and a data type, to the call with results of it."""
    given: Any = op.get_attr("FInferMixedPrecision")
    if given is None:
        return with_out_dtype
    return lambda call, dtype: given(call, dtype)


_ALWAYS = (
    "matmul", "nn.attention", "nn.attention_var_len", "nn.conv1d", "nn.conv1d_transpose",
    "nn.conv2d", "nn.conv2d_transpose", "nn.conv3d",
)  # fmt: skip
_FOLLOW = (
    "abs", "acos", "acosh", "add", "argmax", "argmin", "argsort", "asin", "asinh", "astype", "atan",
    "atanh", "broadcast_to", "ceil", "clip", "collapse_sum_like", "collapse_sum_to", "concat",
    "cos", "cosh", "cumprod", "cumsum", "divide", "dynamic_strided_slice", "einsum", "equal", "erf",
    "ewise_fma", "exp", "expand_dims", "flatten", "flip", "floor", "floor_divide", "floor_mod",
    "full_like", "gather_elements", "gather_nd", "greater", "greater_equal", "index_put",
    "index_tensor", "isfinite", "isinf", "isnan", "layout_transform", "less", "less_equal", "log",
    "max", "maximum", "mean", "meshgrid", "min", "minimum", "mod", "multiply", "negative",
    "not_equal", "ones_like", "permute_dims", "outer", "power", "prod", "repeat", "reshape",
    "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "slice_scatter", "sort", "split", "sqrt",
    "square", "squeeze", "stack", "std", "strided_slice", "subtract", "sum", "take", "tan", "tanh",
    "tile", "topk", "tril", "triu", "trunc", "unique", "variance", "where", "zeros_like",
    "image.resize2d", "nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d",
    "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d", "nn.batch_norm",
    "nn.cross_entropy_with_logits", "nn.dropout", "nn.gelu", "nn.gelu_tanh", "nn.group_norm",
    "nn.layer_norm", "nn.instance_norm", "nn.leakyrelu", "nn.log_softmax", "nn.max_pool1d",
    "nn.max_pool2d", "nn.max_pool3d", "nn.pad", "nn.pixel_shuffle", "nn.prelu", "nn.relu",
    "nn.relu6", "nn.rms_norm", "nn.selu", "nn.silu", "nn.softmax", "nn.softplus",
)  # fmt: skip


def set_policies() -> None:
    """Give operators their policies, when all are declared."""
    for names, policy in ((_ALWAYS, Precision.ALWAYS), (_FOLLOW, Precision.FOLLOW)):
        for name in names:
            Op.get(f"relax.{name}").set_facets(precision=policy)
