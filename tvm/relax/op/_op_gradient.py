"""The gradients of operators.

Each is a function of the variable that a call is bound to, the call, the gradient of the variable and a
block builder, and gives the gradients of the call's arguments; ``no_grad`` says that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.relax.expr import Call, PrimValue, Var, const, get_shape_of
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.struct_info_relations import are_same_dimensions
from tvm.tir.expr import IntImm

from . import binary, create, joining, linear_algebra, manipulate, repeat, search, statistical
from .datatype import astype
from .derivatives import Gradient, derivative
from .grad import no_grad, take_backward
from .infer import product
from .nn_gradient import (
    avg_pool2d_grad,
    conv2d_grad,
    cross_entropy_with_logits_grad,
    gelu_grad,
    gelu_tanh_grad,
    leakyrelu_grad,
    log_softmax_grad,
    max_pool2d_grad,
    nll_loss_grad,
    relu_grad,
    silu_grad,
    softmax_grad,
)

_MATMUL, _PERMUTE = Op.get("relax.matmul"), Op.get("relax.permute_dims")


def summed_to_shape(grad: RelayExpr, info: TensorStructInfo, of: RelayExpr) -> Any:
    """A gradient summed along the axes that an argument was broadcast along.

    Parameters
    ----------
    grad : Expr
    info : TensorStructInfo
        Of the gradient.
    of : Expr
        The argument.
    """
    own = of.struct_info
    if are_same_dimensions(own.dimensions, info.dimensions):
        return grad
    return manipulate.collapse_sum_to(grad, get_shape_of(of))


def _no_grads(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    return [no_grad(arg) for arg in orig_call.args]


def _unary(name: str) -> Gradient:
    rule = derivative(name)

    def gradient(
        orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
    ) -> list[RelayExpr]:
        found: list[RelayExpr] = rule(orig_call.args, orig_var, output_grad)
        return found

    return gradient


def _binary(name: str) -> Gradient:
    rule = derivative(name)

    def gradient(
        orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
    ) -> list[RelayExpr]:
        grads = rule(orig_call.args, orig_var, output_grad)
        return [
            summed_to_shape(grad, orig_var.struct_info, arg)
            if isinstance(arg.struct_info, TensorStructInfo)
            else no_grad(arg)
            for grad, arg in zip(grads, orig_call.args, strict=True)
        ]

    return gradient


add_grad, subtract_grad, multiply_grad = _binary("add"), _binary("subtract"), _binary("multiply")
divide_grad, power_grad = _binary("divide"), _binary("power")
maximum_grad, minimum_grad = _binary("maximum"), _binary("minimum")
equal_grad = greater_grad = greater_equal_grad = less_grad = _no_grads
less_equal_grad = not_equal_grad = _no_grads
zeros_like_grad = ones_like_grad = full_like_grad = _no_grads
zeros_grad = ones_grad = full_grad = _no_grads
abs_grad, cos_grad, exp_grad, log_grad = [_unary(n) for n in ("abs", "cos", "exp", "log")]
negative_grad, sigmoid_grad, sin_grad = [_unary(n) for n in ("negative", "sigmoid", "sin")]
sqrt_grad, tanh_grad = _unary("sqrt"), _unary("tanh")


def triu_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The same triangle of the gradient."""
    return [create.triu(output_grad, orig_call.args[1]), no_grad(orig_call.args[1])]


def tril_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The same triangle of the gradient."""
    return [create.tril(output_grad, orig_call.args[1]), no_grad(orig_call.args[1])]


def square_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """2 * x * g"""
    x = orig_call.args[0]
    return [binary.multiply(output_grad, binary.add(x, x))]


def clip_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The gradient where the bounds were not needed."""
    limits: list[Any] = list(orig_call.args[1:])
    x, low, high = orig_call.args[0], *limits
    bounds = [const(bound.value.value, x.struct_info.dtype) for bound in limits]
    inside = binary.logical_and(binary.greater_equal(x, bounds[0]), binary.less_equal(x, bounds[1]))
    zeros = create.zeros_like(output_grad)
    return [search.where(inside, output_grad, zeros), no_grad(low), no_grad(high)]


# ---- reductions and scans


def _axes(call: Call) -> list[int]:
    """The axes of a reduction, from the front."""
    axis, ndim = call.attrs.axis, call.args[0].struct_info.ndim
    return list(range(ndim)) if axis is None else sorted([a % ndim for a in axis])


def _kept(value: RelayExpr, call: Call) -> Any:
    """A reduction's result, or its gradient, with the reduced axes as ones."""
    attrs = call.attrs
    if attrs.keepdims or attrs.axis is None:
        return value
    return manipulate.expand_dims(value, _axes(call))


def _spread(value: RelayExpr, call: Call) -> Any:
    """A reduction's result, or its gradient, in the shape of its input."""
    return manipulate.broadcast_to(_kept(value, call), get_shape_of(call.args[0]))


def _number(value: PrimExpr, like: RelayExpr) -> RelayExpr:
    dtype = like.struct_info.dtype
    return (
        const(value.value, dtype) if isinstance(value, IntImm) else PrimValue(value.astype(dtype))
    )


def _count(call: Call) -> RelayExpr:
    """The number of elements that each result of a reduction comes from."""
    dims = call.args[0].struct_info.dimensions
    if dims is None:
        raise TVMError(
            f"the gradient of {call.op} requires a tensor of known shape, "
            f"got {call.args[0].struct_info}"
        )
    return _number(product([dims[a] for a in _axes(call)]), call.args[0])


def sum_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The gradient, broadcast."""
    return [_spread(output_grad, orig_call)]


def mean_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The gradient divided by the number of elements, broadcast."""
    return [_spread(binary.divide(output_grad, _count(orig_call)), orig_call)]


def _deviations(call: Call) -> Any:
    x, attrs = call.args[0], call.attrs
    return binary.subtract(x, statistical.mean(x, attrs.axis, keepdims=True))


def variance_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """2 / count * g * (x - mean(x))"""
    x = orig_call.args[0]
    doubled = binary.multiply(output_grad, const(2, x.struct_info.dtype))
    scale = _kept(binary.divide(doubled, _count(orig_call)), orig_call)
    return [binary.multiply(scale, _deviations(orig_call))]


def std_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """g / (count * std) * (x - mean(x))"""
    scale = binary.divide(output_grad, binary.multiply(orig_var, _count(orig_call)))
    return [binary.multiply(_kept(scale, orig_call), _deviations(orig_call))]


def _extremum_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient, shared by the elements that are the extremum."""
    x, axis = orig_call.args[0], orig_call.attrs.axis
    is_found = astype(binary.equal(x, _kept(orig_var, orig_call)), x.struct_info.dtype)
    count = statistical.sum(is_found, axis, keepdims=True)
    return [binary.multiply(is_found, binary.divide(_kept(output_grad, orig_call), count))]


def cumsum_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """Sums from the other end."""
    x, attrs = orig_call.args[0], orig_call.attrs
    axis, own = 0 if attrs.axis is None else attrs.axis, x.struct_info
    grad = repeat.flip(output_grad, axis)
    summed = repeat.flip(statistical.cumsum(grad, axis, own.dtype, attrs.exclusive), axis)
    return [summed if attrs.axis is not None else manipulate.reshape(summed, get_shape_of(x))]


# ---- shapes


def transposed(value: RelayExpr, ctx: Any) -> Any:
    """The last two axes of a tensor exchanged, without a second exchange where one cancels it.

    (a @ b).T    ->    b.T @ a.T
    """
    found = ctx.lookup_binding(value) if isinstance(value, Var) else value
    if isinstance(found, Call) and (inner := _exchanged(found)) is not None:
        return inner
    if isinstance(found, Call) and found.op is _MATMUL:
        a, b = found.args
        if min(a.struct_info.ndim, b.struct_info.ndim) >= 2 and found.attrs.out_dtype.is_void:
            return linear_algebra.matmul(transposed(b, ctx), transposed(a, ctx))
    ndim = value.struct_info.ndim
    return manipulate.permute_dims(value, [*range(ndim - 2), ndim - 1, ndim - 2])


def _permutation(call: Call) -> list[int]:
    axes, ndim = call.attrs.axes, call.args[0].struct_info.ndim
    return list(range(ndim))[::-1] if axes is None else [a % ndim for a in axes]


def _is_exchange(axes: Sequence[int]) -> bool:
    count = len(axes)
    return count >= 2 and list(axes) == [*range(count - 2), count - 1, count - 2]


def _exchanged(call: Call) -> RelayExpr | None:
    """The tensor whose last two axes a call exchanges."""
    if call.op is not _PERMUTE or not _is_exchange(_permutation(call)):
        return None
    found: RelayExpr = call.args[0]
    return found


def permute_dims_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient, permuted back."""
    axes = _permutation(orig_call)
    if _is_exchange(axes):
        return [transposed(output_grad, ctx)]
    back = sorted(range(len(axes)), key=axes.__getitem__)
    return [manipulate.permute_dims(output_grad, back)]


def concat_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient, split."""
    axis = orig_call.attrs.axis
    ends, end = [], 0
    for info in orig_call.args[0].struct_info.fields:
        dims = info.dimensions
        where = 0 if axis is None else axis
        if dims is None or not isinstance(dims[where], IntImm) or (axis is None and len(dims) > 1):
            raise TVMError(
                f"the gradient of concat requires known extents along an axis, got {info}"
            )
        end += dims[where].value
        ends.append(end)
    return [joining.split(output_grad, ends[:-1], axis or 0)]


def split_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The gradients, joined."""
    return [joining.concat(output_grad, orig_call.attrs.axis)]


def _reshaped_back(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient in the shape of the argument."""
    data, *rest = orig_call.args
    back = manipulate.reshape(output_grad, get_shape_of(data))
    return [back, *[no_grad(arg) for arg in rest]]


reshape_grad = _reshaped_back


def expand_dims_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient without the new axes."""
    return [manipulate.squeeze(output_grad, orig_call.attrs.axis)]


def broadcast_to_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient, summed along the axes that were broadcast."""
    data, shape = orig_call.args
    return [summed_to_shape(output_grad, orig_var.struct_info, data), no_grad(shape)]


def flip_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The gradient, flipped."""
    return [repeat.flip(output_grad, orig_call.attrs.axis)]


def astype_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """The gradient in the dtype of the argument."""
    return [astype(output_grad, orig_call.args[0].struct_info.dtype)]


# ---- indexing


def take_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """Gradients added up where elements came from."""
    x, indices = orig_call.args
    return [take_backward(output_grad, x, indices, orig_call.attrs.axis), no_grad(indices)]


def where_grad(orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any) -> list[RelayExpr]:
    """The gradient where each argument was chosen."""
    condition, x1, x2 = orig_call.args
    info = orig_var.struct_info
    zeros = create.zeros_like(output_grad)
    return [
        no_grad(condition),
        summed_to_shape(search.where(condition, output_grad, zeros), info, x1),
        summed_to_shape(search.where(condition, zeros, output_grad), info, x2),
    ]


# ---- products


def matmul_grad(
    orig_var: Var, orig_call: Call, output_grad: RelayExpr, ctx: Any
) -> list[RelayExpr]:
    """g @ b.T and a.T @ g"""
    a, b = orig_call.args
    is_vector = [x.struct_info.ndim == 1 for x in (a, b)]
    grad = output_grad
    if orig_var.struct_info.dtype is not a.struct_info.dtype:
        grad = astype(grad, a.struct_info.dtype)
    if all(is_vector):
        return [binary.multiply(grad, b), binary.multiply(grad, a)]
    batch = list(orig_var.struct_info.dimensions or ())[: -1 if any(is_vector) else -2]
    grad = manipulate.expand_dims(grad, -2) if is_vector[0] else grad
    grad = manipulate.expand_dims(grad, -1) if is_vector[1] else grad
    if is_vector[0]:  # rank one: each element of g beside each of a
        to_b = binary.multiply(manipulate.expand_dims(a, 1), grad)
    else:
        to_b = linear_algebra.matmul(transposed(a, ctx), grad)
        to_b = manipulate.squeeze(to_b, [-1]) if is_vector[1] else to_b
    if is_vector[1]:
        to_a: Any = binary.multiply(grad, b)
    else:
        to_a = linear_algebra.matmul(grad, transposed(b, ctx))
        to_a = manipulate.squeeze(to_a, [-2]) if is_vector[0] else to_a
    return [_without_batch(to_a, batch, a), _without_batch(to_b, batch, b)]


def _without_batch(grad: RelayExpr, batch: Sequence[PrimExpr], of: RelayExpr) -> Any:
    """A matrix's gradient, summed along the batch axes that it was broadcast along."""
    dims = of.struct_info.dimensions
    own = None if dims is None else dims[:-2]
    if own is not None and are_same_dimensions(own, batch):
        return grad
    return manipulate.collapse_sum_to(grad, get_shape_of(of))


_GRADIENTS: dict[str, Gradient] = {
    **{
        name: _unary(name)
        for name in (
            "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "exp",
            "log", "negative", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
        )
    },
    **{
        name: _binary(name)
        for name in ("add", "divide", "maximum", "minimum", "multiply", "power", "subtract")
    },
    **dict.fromkeys(
        (
            "argmax", "argmin", "arange", "ceil", "equal", "floor", "full", "full_like", "greater",
            "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and",
            "logical_not", "logical_or", "logical_xor", "not_equal", "ones", "ones_like", "round",
            "sign", "zeros", "zeros_like", "grad.no_grad",
        ),
        _no_grads,
    ),
    "astype": astype_grad, "broadcast_to": broadcast_to_grad, "clip": clip_grad,
    "concat": concat_grad, "cumsum": cumsum_grad, "expand_dims": expand_dims_grad,
    "flatten": _reshaped_back, "flip": flip_grad, "matmul": matmul_grad, "max": _extremum_grad,
    "mean": mean_grad, "min": _extremum_grad, "permute_dims": permute_dims_grad,
    "reshape": reshape_grad, "split": split_grad, "square": square_grad, "squeeze": _reshaped_back,
    "std": std_grad, "sum": sum_grad, "take": take_grad, "tril": tril_grad, "triu": triu_grad,
    "variance": variance_grad, "where": where_grad, "nn.avg_pool2d": avg_pool2d_grad,
    "nn.conv2d": conv2d_grad, "nn.cross_entropy_with_logits": cross_entropy_with_logits_grad,
    "nn.gelu": gelu_grad, "nn.gelu_tanh": gelu_tanh_grad, "nn.leakyrelu": leakyrelu_grad,
    "nn.log_softmax": log_softmax_grad, "nn.max_pool2d": max_pool2d_grad,
    "nn.nll_loss": nll_loss_grad, "nn.relu": relu_grad, "nn.silu": silu_grad,
    "nn.softmax": softmax_grad,
}  # fmt: skip

for _name, _gradient in _GRADIENTS.items():
    Op.get(f"relax.{_name}").set_facets(gradient=_gradient)
