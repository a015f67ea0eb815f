"""PyTorch's layers as functions: products, convolutions, pooling, normalisation, losses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.relax import op as _op
from tvm.relax.expr import const

from .base_fx_graph_translator import (
    EMITTERS,
    BaseFXGraphImporter,
    Emitter,
    NoEmitter,
    Sizes,
    emitter,
)

Importer = BaseFXGraphImporter


def _out_dtype(e: Importer, x: Any) -> str | None:
    """What products and convolutions name as their results' type; others are those of factors."""
    return "float32" if e.dtype_of(x) == "float32" else None


# ---- products


@emitter("linear")
def _linear(e: Importer, x: Any, weight: Any, bias: Any = None) -> Any:
    return e.emit(_op.linear(x, weight, bias, _out_dtype(e, x)))


@emitter("matmul", "mm")
def _matmul(e: Importer, a: Any, b: Any) -> Any:
    return e.emit(_op.matmul(a, b, out_dtype=_out_dtype(e, a)))


EMITTERS["bmm"] = _matmul


def _with_sum(names_dtype: bool) -> Emitter:
    def emit(e: Importer, x: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
        result = None
        if alpha != 0:
            result = e.emit(_op.matmul(a, b, out_dtype=_out_dtype(e, a) if names_dtype else None))
            if alpha != 1:
                result = e.emit(_op.multiply(result, const(alpha, e.dtype_of(result))))
        if beta != 0:
            if beta != 1:
                x = e.emit(_op.multiply(x, const(beta, e.dtype_of(x))))
            result = x if result is None else e.emit(_op.add(x, result))
        if result is None:
            raise NoEmitter("a product and a sum, both times zero")
        return result

    return emit


EMITTERS.update({"addmm": _with_sum(True), "baddbmm": _with_sum(False)})


@emitter("einsum")
def _einsum(e: Importer, subscripts: str, *operands: Any, path: Any = None) -> Any:
    fields = operands[0] if len(operands) == 1 and isinstance(operands[0], list) else operands
    return e.emit(_op.einsum(tuple(fields), subscripts))


@emitter("functional.embedding")
def _embedding(e: Importer, x: Any, weight: Any, padding_idx: Any = None, max_norm: Any = None,
               *options: Any, **named: Any) -> Any:  # fmt: skip
    if max_norm is not None:
        raise NoEmitter("embedding with max_norm writes to its table")
    x = e.emit(_op.astype(x, "int32"))
    dims = e.shape_of(x)
    if len(dims) == 1:
        return e.emit(_op.take(weight, x, axis=0))
    flat = e.emit(_op.reshape(x, [-1]))
    rows = e.emit(_op.take(weight, flat, axis=0))
    return e.emit(_op.reshape(rows, [*dims, e.shape_of(weight)[-1]]))


@emitter("embedding")
def _embedding_of(e: Importer, weight: Any, x: Any, *options: Any, **named: Any) -> Any:
    return _embedding(e, x, weight)


# ---- convolutions


def _conv(function: Callable[..., Any], rank: int) -> Emitter:
    axes = "DHW"[3 - rank :]

    def emit(
        e: Importer, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        if isinstance(padding, str):
            padding = _named_padding(e, padding, weight, stride, dilation, rank)
        if len(e.shape_of(x)) != rank + 2:
            raise NoEmitter("a convolution without a batch")
        result = e.emit(
            function(
                x, weight, strides=stride, padding=padding, dilation=dilation, groups=groups,
                data_layout=f"NC{axes}", kernel_layout=f"OI{axes}", out_dtype=_out_dtype(e, x),
            )
        )  # fmt: skip
        return _with_bias(e, result, bias, rank)

    return emit


def _named_padding(
    e: Importer, name: str, weight: Any, stride: Any, dilation: Any, rank: int
) -> list[int]:
    if name == "valid":
        return [0] * rank
    steps = [dilation] * rank if isinstance(dilation, int) else list(dilation)
    totals = [d * (k - 1) for d, k in zip(steps * rank, e.shape_of(weight)[2:], strict=False)]
    return [*[t // 2 for t in totals], *[t - t // 2 for t in totals]]


def _with_bias(e: Importer, result: Any, bias: Any, rank: int) -> Any:
    if bias is None:
        return result
    return e.emit(_op.add(result, _op.reshape(bias, (1, -1, *[1] * rank))))


EMITTERS.update(
    {
        "conv1d": _conv(_op.nn.conv1d, 1),
        "conv2d": _conv(_op.nn.conv2d, 2),
        "conv3d": _conv(_op.nn.conv3d, 3),
    }
)


def _transposed_conv(function: Callable[..., Any], rank: int) -> Emitter:
    axes = "HW"[2 - rank :]

    def emit(
        e: Importer, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, groups: int = 1, dilation: Any = 1,
    ) -> Any:  # fmt: skip
        steps = [dilation] if isinstance(dilation, int) else list(dilation)
        if any([step != 1 for step in steps]) or len(e.shape_of(x)) != rank + 2:
            raise NoEmitter("transposed convolutions with dilation")
        result = e.emit(
            function(
                x, weight, strides=stride, padding=padding, output_padding=output_padding,
                dilation=dilation, groups=groups, data_layout=f"NC{axes}",
                kernel_layout=f"IO{axes}", out_dtype=_out_dtype(e, x),
            )
        )  # fmt: skip
        return _with_bias(e, result, bias, rank)

    return emit


EMITTERS.update(
    {
        "conv_transpose1d": _transposed_conv(_op.nn.conv1d_transpose, 1),
        "conv_transpose2d": _transposed_conv(_op.nn.conv2d_transpose, 2),
    }
)


@emitter("convolution")
def _convolution(
    e: Importer, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int,
) -> Any:  # fmt: skip
    rank = len(e.shape_of(weight)) - 2
    if not transposed:
        return e.call(f"conv{rank}d", [x, weight, bias, stride, padding, dilation, groups], {})
    args = [x, weight, bias, stride, padding, output_padding, groups, dilation]
    return e.call(f"conv_transpose{rank}d", args, {})


# ---- pooling


@emitter("max_pool2d")
def _max_pool2d(
    e: Importer, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False, return_indices: bool = False,
) -> Any:  # fmt: skip
    if return_indices or len(e.shape_of(x)) != 4:
        raise NoEmitter("max_pool2d with indices, or without a batch")
    return e.emit(
        _op.nn.max_pool2d(
            x, pool_size=kernel_size, strides=stride or kernel_size, padding=padding,
            dilation=dilation, ceil_mode=ceil_mode, layout="NCHW",
        )
    )  # fmt: skip


@emitter("avg_pool2d")
def _avg_pool2d(
    e: Importer, x: Any, kernel_size: Any, stride: Any = None, padding: Any = 0,
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Any = None,
) -> Any:  # fmt: skip
    widths = [padding] if isinstance(padding, int) else list(padding)
    counts = count_include_pad and any(widths)
    if divisor_override or len(e.shape_of(x)) != 4 or (counts and ceil_mode):
        raise NoEmitter("avg_pool2d that counts what lies outside of its tensor")
    return e.emit(
        _op.nn.avg_pool2d(
            x, pool_size=kernel_size, strides=stride or kernel_size, padding=padding,
            ceil_mode=ceil_mode, count_include_pad=counts, layout="NCHW",
        )
    )  # fmt: skip


@emitter("adaptive_avg_pool2d", "_adaptive_avg_pool2d")
def _adaptive_avg_pool2d(e: Importer, x: Any, output_size: Any) -> Any:
    sizes = [output_size] * 2 if isinstance(output_size, int) else list(output_size)
    if len(e.shape_of(x)) != 4:
        raise NoEmitter("adaptive_avg_pool2d without a batch")
    sizes = [h if s is None else s for s, h in zip(sizes, e.shape_of(x)[2:], strict=True)]
    return e.emit(_op.nn.adaptive_avg_pool2d(x, sizes, layout="NCHW"))


# ---- normalisation


def emit_batch_norm(
    e: Importer, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, epsilon: float
) -> Any:
    """The tuple of the normalised tensor and the statistics, which stay as they are."""
    count = e.shape_of(mean)
    kind = e.dtype_of(mean)
    weight = const(np.ones(count, kind)) if weight is None else weight
    bias = const(np.zeros(count, kind)) if bias is None else bias
    return e.emit(_op.nn.batch_norm(x, weight, bias, mean, variance, axis=1, epsilon=epsilon))


@emitter("batch_norm")
def _batch_norm(
    e: Importer, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, training: bool = False,
    momentum: float = 0.1, eps: float = 1e-5, cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    if training or mean is None:
        raise NoEmitter("normalisation by the batch's own statistics")
    return e.emit(emit_batch_norm(e, x, weight, bias, mean, variance, eps)[0])


@emitter("functional.batch_norm")
def _functional_batch_norm(
    e: Importer, x: Any, mean: Any, variance: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Any:  # fmt: skip
    return _batch_norm(e, x, weight, bias, mean, variance, training, momentum, eps)


@emitter("_native_batch_norm_legit_no_training")
def _native_batch_norm(
    e: Importer, x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float,
    eps: float,
) -> Any:  # fmt: skip
    return emit_batch_norm(e, x, weight, bias, mean, variance, eps)


@emitter("layer_norm")
def _layer_norm(
    e: Importer, x: Any, normalized_shape: Sequence[int], weight: Any = None, bias: Any = None,
    eps: float = 1e-5, cudnn_enable: bool = False,
) -> Any:  # fmt: skip
    shape = [int(s) for s in normalized_shape]
    kind = e.dtype_of(x)
    gamma = const(np.ones(shape, kind)) if weight is None else weight
    beta = const(np.zeros(shape, kind)) if bias is None else bias
    axes = list(range(-len(shape), 0))
    return e.emit(_op.nn.layer_norm(x, gamma, beta, axes=axes, epsilon=eps))


@emitter("group_norm")
def _group_norm(
    e: Importer, x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5,
    cudnn_enabled: bool = False,
) -> Any:  # fmt: skip
    dims, kind = e.shape_of(x), e.dtype_of(x)
    gamma = const(np.ones(dims[1], kind)) if weight is None else weight
    beta = const(np.zeros(dims[1], kind)) if bias is None else bias
    return e.emit(
        _op.nn.group_norm(
            x, gamma, beta, num_groups=num_groups, channel_axis=1, axes=list(range(2, len(dims))),
            epsilon=eps,
        )
    )  # fmt: skip


# ---- attention


@emitter("scaled_dot_product_attention")
def _attention(
    e: Importer, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, scale: Any = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if dropout_p:
        raise NoEmitter("attention with dropout")
    is_added = attn_mask is None or (
        e.dtype_of(attn_mask).startswith("float") and len(e.shape_of(attn_mask)) == 4
    )
    if len(e.shape_of(query)) != 4 or enable_gqa or not is_added:
        if Sizes([*e.shape_of(query), *e.shape_of(key)]).are_known:
            raise NoEmitter("attention of other than four axes, of grouped heads, or of a mask")
        return _composed_attention(e, query, key, value, attn_mask, is_causal, scale)
    q, k, v = [_op.permute_dims(x, [0, 2, 1, 3]) for x in (query, key, value)]
    causal = "TopLeft" if is_causal else None
    mixed = e.emit(_op.nn.attention(q, k, v, bias=attn_mask, scale=scale, causal_mask=causal))
    return e.emit(_op.permute_dims(mixed, [0, 2, 1, 3]))


def _composed_attention(
    e: Importer, query: Any, key: Any, value: Any, mask: Any, is_causal: bool, scale: Any
) -> Any:
    """softmax(Q K^T * scale + mask) V; a bool mask keeps where it is true."""
    dims, kind = e.shape_of(query), e.dtype_of(query)
    key, value = [_for_all_heads(e, x, dims) for x in (key, value)]
    rank = len(e.shape_of(key))
    turned = e.emit(_op.permute_dims(key, [*range(rank - 2), rank - 1, rank - 2]))
    if scale is None and not isinstance(dims[-1], int):
        raise NoEmitter("attention of symbolic width")
    factor = dims[-1] ** -0.5 if scale is None else scale
    scores = e.emit(_op.multiply(e.emit(_op.matmul(query, turned)), const(factor, kind)))
    if is_causal:
        rows, columns = dims[-2], e.shape_of(key)[-2]
        mask = e.emit(_op.tril(e.emit(_op.ones([rows, columns], "bool"))))
    if mask is not None and e.dtype_of(mask) == "bool":
        scores = e.emit(_op.where(mask, scores, const(float("-inf"), kind)))
    elif mask is not None:
        scores = e.emit(_op.add(scores, mask))
    return e.emit(_op.matmul(e.emit(_op.nn.softmax(scores, -1)), value))


def _for_all_heads(e: Importer, x: Any, query: Sizes) -> Any:
    """Keys or values that groups of heads share, once for each head."""
    dims = e.shape_of(x)
    if len(dims) < 3 or not Sizes([query[-3], dims[-3]]).are_known or dims[-3] in (1, query[-3]):
        return x
    return e.emit(_op.repeat(x, query[-3] // dims[-3], len(dims) - 3))


# ---- losses


@emitter("cross_entropy")
def _cross_entropy(
    e: Importer, predictions: Any, targets: Any, weight: Any = None, size_average: Any = None,
    ignore_index: int = -100, reduce: Any = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    if label_smoothing or e.dtype_of(targets).startswith("float"):
        raise NoEmitter("cross_entropy with smoothed labels")
    axis = -1 if len(e.shape_of(predictions)) < 3 else 1
    scores = _op.nn.log_softmax(predictions, axis)
    return e.emit(_op.nn.nll_loss(scores, targets, weight, reduction, ignore_index))
