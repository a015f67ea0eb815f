"""Operators on tensors of models. Each is bound to a variable of the name ``name``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import tir as _tir
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.relax import op as _op
from tvm.relax.expr import PrimValue, StringImm, const
from tvm.relax.struct_info import ObjectStructInfo

from .ccl import ccl_allgather, ccl_allreduce, ccl_broadcast_from_worker0
from .core import Object, Parameter, Tensor, current_builder, get_default_dtype, wrap_nested
from .io_effect import CURRENT
from .sampling import (
    multinomial_from_uniform,
    renormalize_top_p_top_k_prob,
    sample_top_p_top_k_from_sorted_prob,
)

IntExpr = int | PrimExpr


def _expr(value: Any) -> Any:
    """What a tensor stands for; other values themselves."""
    if isinstance(value, (Tensor, Object)):
        return value._expr
    if isinstance(value, (list, tuple)):
        return type(value)([_expr(item) for item in value])
    return value


def _emitted(function: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Tensor:
    made: Tensor = wrap_nested(function(*[_expr(a) for a in args], **kwargs), name)
    return made


def unsqueeze(x: Tensor, dim: int, name: str = "unsqueeze") -> Tensor:
    """A tensor with one more axis, of extent 1, at ``dim``."""
    return _emitted(_op.expand_dims, name, x, dim)


def concat(x: list[Tensor], dim: int, name: str = "concat") -> Tensor:
    """Tensors one behind the other along an axis."""
    return _emitted(_op.concat, name, [_expr(t) for t in x], axis=dim)


def _binary(function: Callable[..., Any], default: str, what: str) -> Any:
    def apply(a: Any, b: Any, name: str = default) -> Any:
        return _emitted(function, name, a, b)

    apply.__doc__ = f"{what}, element by element, axes of extent 1 broadcast."
    apply.__name__ = apply.__qualname__ = default
    return apply


add = _binary(_op.add, "add", "Sums")
subtract = _binary(_op.subtract, "subtract", "Differences")
multiply = _binary(_op.multiply, "mul", "Products")
divide = _binary(_op.divide, "divide", "Quotients")
maximum = _binary(_op.maximum, "maximum", "The larger elements")
minimum = _binary(_op.minimum, "minimum", "The smaller elements")
less = _binary(_op.less, "less", "Whether the first are smaller")
less_equal = _binary(_op.less_equal, "less_equal", "Whether the first are not larger")
greater = _binary(_op.greater, "greater", "Whether the first are larger")
greater_equal = _binary(_op.greater_equal, "greater_equal", "Whether the first are not smaller")
equal = _binary(_op.equal, "equal", "Whether both are equal")
not_equal = _binary(_op.not_equal, "not_equal", "Whether both differ")


def _unary(function: Callable[..., Any], default: str, what: str) -> Any:
    def apply(x: Tensor, name: str = default) -> Any:
        return _emitted(function, name, x)

    apply.__doc__ = f"{what}, element by element."
    apply.__name__ = apply.__qualname__ = default
    return apply


relu = _unary(_op.nn.relu, "relu", "The elements above zero, else zero")
silu = _unary(_op.nn.silu, "silu", "``x * sigmoid(x)``")
sigmoid = _unary(_op.sigmoid, "sigmoid", "The logistic function")
tanh = _unary(_op.tanh, "tanh", "Hyperbolic tangents")
exp = _unary(_op.exp, "exp", "Exponentials")
negative = _unary(_op.negative, "neg", "The elements of the other sign")
square = _unary(_op.square, "square", "Squares")
sqrt = _unary(_op.sqrt, "sqrt", "Square roots")


def gelu(x: Tensor, approximate: str | None = None, name: str = "gelu") -> Tensor:
    """``x * Phi(x)``, exactly, or by its formula in tanh with ``approximate="tanh"``."""
    return _emitted(_op.nn.gelu_tanh if approximate == "tanh" else _op.nn.gelu, name, x)


def softmax(x: Tensor, axis: int = -1, name: str = "softmax") -> Tensor:
    """Normalised exponentials along an axis."""
    return _emitted(_op.nn.softmax, name, x, axis)


def chunk(x: Tensor, chunks: int, dim: int = 0, name: str = "chunk") -> Any:
    """A tensor in equal parts along an axis."""
    return _emitted(_op.split, name, x, chunks, dim)


def split(
    ary: Tensor, indices_or_sections: int | Sequence[int], axis: int = 0, name: str = "split"
) -> Any:
    """A tensor in equal parts, or cut at indices, along an axis."""
    return _emitted(_op.split, name, ary, indices_or_sections, axis)


def sum(
    x: Tensor, axis: int | list[int] | None = None, keepdims: bool = False, name: str = "sum"
) -> Tensor:
    """Sums along axes."""
    return _emitted(_op.sum, name, x, axis, keepdims)


def matmul(a: Tensor, b: Tensor, out_dtype: str | None = None, name: str = "matmul") -> Tensor:
    """Products of matrices, of all axes but the last two one by one."""
    return _emitted(_op.matmul, name, a, b, out_dtype=out_dtype)


def _with_bias(conv: RelayExpr, bias: Tensor | None, axis: int, name: str) -> Tensor:
    made: Tensor
    if bias is None:
        made = wrap_nested(conv, name)
        return made
    result = current_builder().emit(conv, name)
    shape = [1] * result.struct_info.ndim
    shape[axis] = bias.shape[0]
    made = wrap_nested(_op.add(result, _op.reshape(bias._expr, shape)), name)
    return made


def conv1d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1, name: str = "conv1d",
) -> Tensor:  # fmt: skip
    """Convolution of (batch, channels, width)."""
    options = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    conv = _op.nn.conv1d(x._expr, weight._expr, **options)
    return _with_bias(conv, bias, 1, name)


def conv2d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1, data_layout: str = "NCHW", name: str = "conv2d",
) -> Tensor:  # fmt: skip
    """Convolution of images; the weight is OIHW, or OHWI with ``data_layout="NHWC"``."""
    options = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _spatial_conv(_op.nn.conv2d, x, weight, bias, data_layout, options, name)


def conv3d(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1, data_layout: str = "NCDHW", name: str = "conv3d",
) -> Tensor:  # fmt: skip
    """Convolution of volumes; the weight is OIDHW, or ODHWI with ``data_layout="NDHWC"``."""
    options = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _spatial_conv(_op.nn.conv3d, x, weight, bias, data_layout, options, name)


def _spatial_conv(
    function: Callable[..., Any], x: Tensor, weight: Tensor, bias: Tensor | None,
    data_layout: str, options: dict[str, Any], name: str,
) -> Tensor:  # fmt: skip
    """A convolution whose weight has its inputs last where the data has its channels last."""
    spatial = data_layout.strip("NC")
    kernel = f"OI{spatial}" if data_layout.startswith("NC") else f"O{spatial}I"
    conv = function(x._expr, weight._expr, data_layout=data_layout, kernel_layout=kernel, **options)
    return _with_bias(conv, bias, data_layout.index("C"), name)


def conv1d_transpose(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, dilation: Any = 1, groups: int = 1, name: str = "conv1d_transpose",
) -> Tensor:  # fmt: skip
    """Transposed convolution of (batch, channels, width)."""
    conv = _op.nn.conv1d_transpose(
        x._expr, weight._expr, strides=stride, padding=padding, output_padding=output_padding,
        dilation=dilation, groups=groups,
    )  # fmt: skip
    return _with_bias(conv, bias, 1, name)


def broadcast_to(x: Tensor, shape: Sequence[IntExpr], name: str = "broadcast_to") -> Tensor:
    """A tensor whose axes of extent 1 are repeated."""
    return _emitted(_op.broadcast_to, name, x, _shape(shape))


def permute_dims(x: Tensor, axes: list[int] | None = None, name: str | None = None) -> Tensor:
    """The axes in another order, the opposite one by default."""
    if name is None:
        names = getattr(getattr(x, "_expr", None), "name_hint", "")
        name = (
            f"{names.replace('linear', 'matmul')}_T" if isinstance(x, Parameter) else "permute_dims"
        )
    return _emitted(_op.permute_dims, name, x, axes=axes)


def permute(x: Tensor, axes: list[int] | None, name: str = "permute") -> Tensor:
    """The axes in another order."""
    return _emitted(_op.permute_dims, name, x, axes=axes)


def reshape(x: Tensor, shape: Sequence[IntExpr], name: str = "reshape") -> Tensor:
    """The elements in another shape, of which one extent may be -1."""
    return _emitted(_op.reshape, name, x, _shape(shape))


def repeat(x: Tensor, repeats: int, axis: int | None = None, name: str = "repeat") -> Tensor:
    """Each element several times along an axis."""
    return _emitted(_op.repeat, name, x, repeats, axis)


def squeeze(x: Tensor, axis: int = -1, name: str = "squeeze") -> Tensor:
    """A tensor without an axis of extent 1."""
    return _emitted(_op.squeeze, name, x, axis)


def take(x: Tensor, indices: Tensor, axis: int | None = None, name: str = "take") -> Tensor:
    """The elements at indices along an axis."""
    return _emitted(_op.take, name, x, indices, axis)


def astype(x: Tensor, dtype: str, name: str = "astype") -> Tensor:
    """The elements in another data type; the tensor itself if it has it."""
    return x if x.dtype == dtype else _emitted(_op.astype, name, x, dtype)


def layer_norm(
    x: Tensor, normalized_shape: int | list[int], weight: Tensor | None = None,
    bias: Tensor | None = None, eps: float = 1e-5, name: str = "layer_norm",
) -> Tensor:  # fmt: skip
    """The last axes less their mean, over their deviation; times a weight, plus a bias."""
    extents = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    axes = [i - len(extents) for i in range(len(extents))]
    dtype = x.dtype
    scale = const(np.ones(extents), dtype) if weight is None else weight._expr
    shift = const(np.zeros(extents), dtype) if bias is None else bias._expr
    return _emitted(_op.nn.layer_norm, name, x, gamma=scale, beta=shift, axes=axes, epsilon=eps)


def rms_norm(
    x: Tensor, weight: Tensor, axes: int | list[int], epsilon: float = 1e-5, name: str = "rms_norm"
) -> Tensor:
    """The tensor over its root mean square along axes, times a weight."""
    return _emitted(_op.nn.rms_norm, name, x, weight, axes, epsilon)


def group_norm(
    x: Tensor, num_groups: int, weight: Tensor | None, bias: Tensor | None, eps: float = 1e-5,
    channel_axis: int = 1, axes: list[int] | None = None, name: str = "group_norm",
) -> Tensor:  # fmt: skip
    """Groups of channels less their mean, over their deviation; times a weight, plus a bias."""
    channels = x.shape[channel_axis]
    scale = const(np.ones(channels), x.dtype) if weight is None else weight._expr
    shift = const(np.zeros(channels), x.dtype) if bias is None else bias._expr
    others = [i for i in range(x.ndim) if i not in (0, channel_axis)] if axes is None else axes
    return _emitted(_op.nn.group_norm, name, x, scale, shift, num_groups, channel_axis, others, eps)


def triu(x: Tensor, diagonal: int = 0, name: str = "triu") -> Tensor:
    """Matrices with zeros below a diagonal."""
    return _emitted(_op.triu, name, x, diagonal)


def full(
    shape: Sequence[IntExpr], fill_value: Any, dtype: str = "float32", name: str = "full"
) -> Tensor:
    """A tensor of one value."""
    value = const(fill_value, dtype) if isinstance(fill_value, (int, float)) else _expr(fill_value)
    return _emitted(_op.full, name, _shape(shape), value, dtype)


def zeros(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "zeros") -> Tensor:
    """A tensor of zeros."""
    return _emitted(_op.zeros, name, _shape(shape), dtype)


def ones(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "ones") -> Tensor:
    """A tensor of ones."""
    return _emitted(_op.ones, name, _shape(shape), dtype)


def empty(shape: Sequence[IntExpr], dtype: str = "float32", name: str = "empty") -> Tensor:
    """A new tensor with undefined contents."""
    return _emitted(_op.builtin.alloc_tensor, name, _shape(shape), dtype, runtime_device_index=0)


def pad(
    x: Tensor, pad: list[int], mode: str = "constant", value: float = 0.0, name: str = "pad"
) -> Tensor:
    """A tensor with a border: widths before and after each axis, the last axis first."""
    widths = list(pad) + [0] * (2 * x.ndim - len(pad))
    pairs = [widths[i : i + 2] for i in range(0, len(widths), 2)]
    flat = [width for pair in reversed(pairs) for width in pair]
    return _emitted(_op.nn.pad, name, x, pad_width=flat, pad_mode=mode, pad_value=value)


def get_timestep_embedding(
    x: Tensor, embedding_dim: int, flip_sin_to_cos: bool = False, downscale_freq_shift: float = 1,
    scale: float = 1, max_period: int = 10000, name: str = "get_timestep_embedding",
) -> Tensor:  # fmt: skip
    """Sines and cosines of positions at falling frequencies (Vaswani et al. 2017).

    Parameters
    ----------
    x : Tensor
        The positions, (count,).
    embedding_dim : int
        How many numbers a position becomes.
    flip_sin_to_cos : bool
        Whether cosines come first.
    downscale_freq_shift : float
        What the number of frequencies is lessened by.
    scale : float
        A factor of the angles.
    max_period : int
        The slowest frequency's period.
    """
    timesteps = _op.astype(x._expr, "float32")
    half = embedding_dim // 2
    exponent = const(-math.log(max_period), "float32") * _op.arange(0, half, dtype="float32")
    exponent = exponent / const(half - downscale_freq_shift, "float32")
    angles = _op.expand_dims(timesteps, 1) * _op.expand_dims(_op.exp(exponent), 0)
    if scale != 1:
        angles = const(scale, "float32") * angles
    parts = [_op.sin(angles), _op.cos(angles)]
    embedding = _op.concat(parts[::-1] if flip_sin_to_cos else parts, axis=-1)
    if embedding_dim % 2 == 1:
        embedding = _op.nn.pad(embedding, (0, 0, 0, 1))
    return _emitted(_op.astype, name, embedding, get_default_dtype())


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
    is_causal: bool | None = False, scale: float | None = None,
    name: str = "scaled_dot_product_attention",
) -> Tensor:  # fmt: skip
    """Attention of (batch, length, heads, depth); a mask is added to the scores."""
    return _emitted(
        _op.nn.attention, name, query, key, value, None if attn_mask is None else attn_mask._expr,
        causal_mask="TopLeft" if is_causal else None, scale=scale,
    )  # fmt: skip


def interpolate(
    x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    antialias: bool | None = None, data_layout: str = "NCHW", name: str = "interpolate",
) -> Tensor:  # fmt: skip
    """Images of another size: of that size, or by factors."""
    if recompute_scale_factor or antialias:
        raise ValueError("interpolate has neither recompute_scale_factor nor antialias")
    if size is None:
        spatial = [x.shape[i] for i, axis in enumerate(data_layout) if axis in "DHW"]
        factors = (
            scale_factor
            if isinstance(scale_factor, (list, tuple))
            else [scale_factor] * len(spatial)
        )
        size = tuple(
            [
                int(e * f) if isinstance(e, int) else e * f
                for e, f in zip(spatial, factors, strict=True)
            ]
        )
    method = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}
    if mode.startswith("nearest"):
        how, transform = "nearest_neighbor", "asymmetric"
    else:
        how = method.get(mode, mode)
        transform = "align_corners" if align_corners else "half_pixel"
    return _emitted(
        _op.image.resize2d, name, x, size, layout=data_layout, method=how,
        coordinate_transformation_mode=transform,
    )  # fmt: skip


def where(condition: Tensor, x1: Tensor, x2: Tensor, name: str = "where") -> Tensor:
    """The elements of one tensor where a condition holds, of another elsewhere."""
    holds = astype(condition, "bool")
    return _emitted(_op.where, name, holds, x1, x2)


def cumsum(
    data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None,
    name: str = "cumsum",
) -> Tensor:  # fmt: skip
    """Sums of all elements up to each, along an axis."""
    return _emitted(_op.cumsum, name, data, axis, dtype, exclusive)


def sort(x: Tensor, axis: int = -1, descending: bool = False, name: str = "sort") -> Tensor:
    """The elements in order along an axis."""
    return _emitted(_op.sort, name, x, axis, descending)


def argsort(
    data: Tensor,
    axis: int = -1,
    descending: bool = False,
    dtype: str = "int32",
    name: str = "argsort",
) -> Tensor:
    """The indices of the elements in order along an axis."""
    return _emitted(_op.argsort, name, data, axis, descending, dtype)


def topk(
    data: Tensor, k: int = 1, axis: int = -1, ret_type: str = "both", largest: bool = True,
    dtype: str = "int32", name: str = "topk",
) -> Any:  # fmt: skip
    """The largest elements along an axis, and their indices."""
    return _emitted(_op.topk, name, data, k, axis, ret_type, largest, dtype)


# ---- what is no operator


def tensor_expr_op(
    tensor_expr_func: Callable[..., Any], name_hint: str, args: Sequence[Any],
    *, attrs: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """What a function of tensor expressions computes.

    Parameters
    ----------
    tensor_expr_func : callable
        From tensors of te, and other values, to one tensor or several.
    name_hint : str
        The loop program's name.
    args : list
        The arguments.
    attrs : dict, optional
        The loop program's attributes.
    """
    call = current_builder().call_te(
        tensor_expr_func,
        *[_expr(a) for a in args],
        primfunc_name_hint=name_hint,
        primfunc_attrs=attrs,
    )
    return wrap_nested(call, name_hint)


def _tir_arguments(args: Any) -> tuple[list[Any], list[Any]]:
    given = list(args) if isinstance(args, (list, tuple)) else [args]
    tensors = [_expr(a) for a in given if isinstance(a, (Tensor, Object))]
    return tensors, [a for a in given if isinstance(a, (int, PrimExpr))]


def _out_info(out: Any) -> Any:
    return (
        [t._expr.struct_info for t in out]
        if isinstance(out, (list, tuple))
        else out._expr.struct_info
    )


def tensor_ir_op(func: _tir.PrimFunc, name_hint: str, args: Any, out: Any) -> Any:
    """What a loop program computes.

    Parameters
    ----------
    func : PrimFunc
        Its last parameters are the results.
    name_hint : str
        Its name.
    args : list of Tensor or PrimExpr
        The inputs.
    out : Tensor or list of Tensor
        Placeholders of the results.
    """
    gvar = current_builder().add_func(func, name_hint)
    tensors, numbers = _tir_arguments(args)
    call = _op.call_tir(gvar, tensors, _out_info(out), tir_vars=numbers or None)
    return wrap_nested(call, name_hint)


def tensor_ir_inplace_op(
    func: _tir.PrimFunc, name_hint: str, args: Any, inplace_indices: int | list[int], out: Any
) -> Any:
    """What a loop program that writes over some of its inputs computes; see `tensor_ir_op`."""
    gvar = current_builder().add_func(func, name_hint)
    tensors, numbers = _tir_arguments(args)
    call = _op.call_tir_inplace(gvar, tensors, inplace_indices, _out_info(out), numbers or None)
    return wrap_nested(call, name_hint)


def extern(name: str, args: Sequence[Any], out: Any) -> Any:
    """What a packed function computes, whose last parameters are its results.

    Parameters
    ----------
    name : str
        The function.
    args : list of Tensor, number, text or PrimExpr
        The inputs.
    out : Tensor or list of Tensor
        Placeholders of the results.
    """

    def operand(value: Any) -> Any:
        if isinstance(value, (int, float, PrimExpr)):
            return PrimValue(value)
        return StringImm(value) if isinstance(value, str) else _expr(value)

    call = _op.call_dps_packed(name, [operand(a) for a in args], _out_info(out))
    return wrap_nested(call, name)


def debug_func(name: str, *args: Any, _line_info: str | None = None) -> None:
    """Call a global function with the line of this call and with values, when the model runs.

    Parameters
    ----------
    name : str
        The global function.
    args : Tensor, number or text
        The values.
    """
    effect = CURRENT.current()
    if effect is None:
        raise RuntimeError("debug_func needs a model exported with debug=True")
    if _line_info is None:
        frame = inspect.stack()[1]
        _line_info = f"{frame.filename}:{frame.lineno}"
    operands = []
    for arg in args:
        is_number = isinstance(arg, (int, float, PrimExpr))
        operands.append(
            PrimValue(arg) if is_number else StringImm(arg) if isinstance(arg, str) else _expr(arg)
        )
    call = _op.call_pure_packed(
        "vm.builtin.invoke_debug_func", effect.effect, StringImm(name), StringImm(_line_info), *operands,
        sinfo_args=[ObjectStructInfo()],
    )  # fmt: skip
    effect.effect = current_builder().emit(call, effect.effect.name_hint)


def print_(tensor: Tensor) -> None:
    """Print a tensor when the model runs."""
    frame = inspect.stack()[1]
    debug_func("vm.builtin.debug_print", tensor, _line_info=f"{frame.filename}:{frame.lineno}")


def _shape(shape: Any) -> Any:
    return shape if isinstance(shape, RelayExpr) else list(shape)


__all__ = [
    "add", "argsort", "astype", "broadcast_to", "ccl_allgather", "ccl_allreduce",
    "ccl_broadcast_from_worker0", "chunk", "concat", "conv1d", "conv1d_transpose",
    "conv2d", "conv3d", "cumsum", "debug_func", "divide", "empty", "equal", "exp", "extern", "full",
    "gelu", "get_timestep_embedding", "greater", "greater_equal", "group_norm", "interpolate",
    "layer_norm", "less", "less_equal", "matmul", "maximum", "minimum", "multinomial_from_uniform",
    "multiply", "negative", "not_equal", "ones", "pad", "permute", "permute_dims", "print_", "relu",
    "renormalize_top_p_top_k_prob", "repeat", "reshape", "rms_norm",
    "sample_top_p_top_k_from_sorted_prob", "scaled_dot_product_attention", "sigmoid", "silu",
    "softmax", "sort", "split", "sqrt", "square", "squeeze", "subtract", "sum", "take", "tanh",
    "tensor_expr_op", "tensor_ir_inplace_op", "tensor_ir_op", "topk", "triu", "unsqueeze", "where",
    "zeros",
]  # fmt: skip
