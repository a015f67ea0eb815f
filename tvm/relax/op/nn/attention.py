"""Attention."""

from __future__ import annotations

from typing import Any

from tvm import tir, topi
from tvm.ir.op import Op
from tvm.relax.expr import Call
from tvm.relax.op.infer import (
    broadcast_dims,
    check_count,
    common_dtype,
    common_vdevice,
    dims_of,
    fail,
    made,
    prove_equal,
    tensor,
    tensors,
)
from tvm.relax.op.operator import Expr, OptExpr, define, operator
from tvm.relax.struct_info import TensorStructInfo


def _same(a: Any, b: Any) -> bool:
    return not (hasattr(a, "value") and hasattr(b, "value")) or prove_equal(a, b)


def _infer_attention(call: Any, bb: Any) -> Any:
    """A tensor of shape (batch, queries, heads, size of a value) and the operands' dtype."""
    check_count(call, 3, 4)
    q, k, v = [tensor(call, i) for i in range(3)]
    kind = common_dtype(call, [q, k, v])
    device = common_vdevice(call, [q, k, v])
    for name, info in (("query", q), ("key", k), ("value", v)):
        if info.ndim not in (-1, 4):
            raise fail(call, f"requires a {name} of four dimensions, got {info}")
    a, b, c = [dims_of(i) for i in (q, k, v)]
    if a is None or b is None or c is None:
        return made(None, kind, device, 4)
    for x, y, what in (
        (a[0], b[0], "batch size"), (a[0], c[0], "batch size"), (a[3], b[3], "head size"),
        (b[1], c[1], "sequence length"),
    ):  # fmt: skip
        if not _same(x, y):
            raise fail(call, f"requires one {what}, got {x} and {y}")
    if len(call.args) == 4:
        bias = tensor(call, 3)
        if bias.ndim not in (-1, 4):
            raise fail(call, f"requires a bias of four dimensions, got {bias}")
        own = dims_of(bias)
        if own is not None:
            broadcast_dims(call, own, (a[0], a[2], a[1], b[1]))
    return made((a[0], a[1], a[2], c[3]), kind, device)


def attention_compute(
    q: Any, k: Any, v: Any, bias: Any, scale: Any, causal: str | None, window: Any = None
) -> Any:
    """softmax(q @ k.T * scale + bias) @ v of tensors of (batch, length, heads, size)."""
    batch, length, heads, size = q.shape
    keys = k.shape[1]
    out = v.shape[3]
    q = topi.reshape(topi.transpose(q, [0, 2, 1, 3]), [batch * heads, length, size])
    k = topi.reshape(topi.transpose(k, [0, 2, 1, 3]), [batch * heads, keys, size])
    v = topi.reshape(topi.transpose(v, [0, 2, 1, 3]), [batch * heads, keys, out])
    scores = topi.nn.batch_matmul(q, k)
    if scale is not None:
        scores = topi.multiply(scores, tir.const(scale, q.dtype))
    else:
        root = tir.sqrt(size.astype(q.dtype))
        scores = topi.divide(scores, root)
    if bias is not None:
        scores = topi.reshape(scores, [batch, heads, length, keys])
        scores = topi.reshape(topi.add(scores, bias), [batch * heads, length, keys])
    if causal is None:
        weights = topi.nn.softmax(scores)
    else:
        offset = 0 if causal == "TopLeft" else tir.abs(length - keys).astype("int32")
        high = topi.max(scores, axis=-1, keepdims=True)
        masked = topi.trilu(
            topi.exp(topi.subtract(scores, high)),
            tir.const(offset, "int32") if isinstance(offset, int) else offset,
            upper=False,
        )
        if window is not None:
            masked = topi.trilu(masked, tir.const(1 - window, "int32") + offset, upper=True)
        weights = topi.divide(masked, topi.sum(masked, axis=-1, keepdims=True))
    result = topi.nn.batch_matmul(weights, v, transpose_b=False)
    result = topi.reshape(result, [batch, heads, length, out])
    return topi.transpose(result, [0, 2, 1, 3])


def _legalize_attention(bb: Any, call: Call) -> Any:
    attrs = call.attrs
    if attrs.window_size is not None and attrs.causal_mask is None:
        raise fail(call, "requires a causal_mask for a window_size")
    bias = call.args[3] if len(call.args) == 4 else None
    return bb.call_te(
        attention_compute, *call.args[:3], bias, attrs.scale, attrs.causal_mask,
        attrs.window_size, primfunc_name_hint="attention" if bias is None else "attention_bias",
    )  # fmt: skip


@operator(
    "relax.nn.attention", "AttentionAttrs", infer=_infer_attention, FLegalize=_legalize_attention
)
def attention(
    query: Expr, key: Expr, value: Expr, bias: OptExpr = None, scale: float | None = None,
    causal_mask: str | None = None, window_size: int | None = None,
) -> Expr:  # fmt: skip
    """softmax(query @ key.T * scale + bias) @ value

    Parameters
    ----------
    query, key, value : relax.Expr
        Of shape (batch, length, heads, size).
    bias : relax.Expr, optional
        That broadcasts to (batch, heads, length, keys).
    scale : float, optional
        By default one over the root of the size.
    causal_mask : str, optional
        ``"TopLeft"`` or ``"BottomRight"``: where the diagonal begins above which keys are masked.
    window_size : int, optional
        How many keys before its own a query sees.
    """
    if bias is None:
        return None
    return Call(
            attention_bias_op, [query, key, value, bias],
            attention_bias_op.attrs_type(
                None if scale is None else float(scale), causal_mask, window_size
            ),
        )  # fmt: skip


attention_bias_op = define(
    "relax.nn.attention_bias", _infer_attention, FLegalize=_legalize_attention
)
attention_bias_op.set_facets(attrs_type=Op.get("relax.nn.attention").attrs_type)


def _infer_var_len(call: Any, bb: Any) -> Any:
    """A tensor of shape (batch, queries, heads, size of a value) and the operands' dtype."""
    infos = [tensor(call, i) for i in range(3)]
    q, _, v = infos
    kind = common_dtype(call, infos)
    a, c = dims_of(q), dims_of(v)
    if a is None or c is None:
        return made(None, kind, q.vdevice, 4)
    return made((a[0], a[1], a[2], c[3]), kind, q.vdevice)


@operator("relax.nn.attention_var_len", "AttentionAttrs", infer=_infer_var_len)
def attention_var_len(
    queries: Expr, keys: Expr, values: Expr, seqstart_q: Expr, max_seqlen_q: Expr,
    seqstart_k: OptExpr = None, max_seqlen_k: OptExpr = None, scale: float | None = None,
    causal_mask: str | None = None, window_size: int | None = None,
) -> Expr:  # fmt: skip
    """Attention of several sequences in one tensor.

    Parameters
    ----------
    queries, keys, values : relax.Expr
        Of shape (1, total length, heads, size).
    seqstart_q, seqstart_k : relax.Expr
        Where sequences begin, and the end of the last.
    max_seqlen_q, max_seqlen_k : relax.Expr
        The greatest length.
    scale, causal_mask, window_size
        As of `attention`.
    """
    return {
        "seqstart_k": seqstart_q if seqstart_k is None else seqstart_k,
        "max_seqlen_k": max_seqlen_q if max_seqlen_k is None else max_seqlen_k,
    }


__all__ = ["TensorStructInfo", "attention", "attention_compute", "attention_var_len", "tensors"]
