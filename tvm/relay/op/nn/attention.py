"""Attention as one operator; the pass FuseAttention finds it in models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, topi
from tvm.ir.expr import RelayExpr
from tvm.ir.type import TupleType, Type

from ..operator import Expr, operator
from ..registry import OpPattern, Precision
from ..schedules import default_schedules
from ..types import Tensor3, expect, expect_dim, expect_same_dtype, shape_of_type, tensor


def _attention_type(attrs: Any, query: Tensor3, key: Tensor3, value: Tensor3, masks: Type) -> Type:
    who = "nn.contrib_attention"
    dtype = expect_same_dtype((query, key, value), who)
    (batch, rows, depth), keys, values = [shape_of_type(ty) for ty in (query, key, value)]
    expect_dim(keys[0], batch, who, "key's batch")
    expect_dim(values[0], batch, who, "value's batch")
    expect_dim(keys[2], depth, who, "the keys' depth")
    expect_dim(values[1], keys[1], who, "the number of values")
    count = int(attrs.has_bias) + int(attrs.has_keep)
    expect(
        isinstance(masks, TupleType) and len(masks.fields) == count,
        f"{who} requires a tuple of {count} masks",
    )
    if not attrs.merge_heads:
        return tensor((batch, rows, values[2]), dtype)
    return tensor((batch // attrs.heads, rows, attrs.heads * values[2]), dtype)


def _compute(attrs: Any, inputs: Sequence[te.Tensor], out_type: Type) -> list[te.Tensor]:
    masks = list(inputs[3:])
    bias = masks.pop(0) if attrs.has_bias else None
    keep = masks.pop(0) if attrs.has_keep else None
    query, key, value = inputs[:3]
    config = None
    if topi.utils.is_target("cpu"):
        rows, columns = [topi.utils.dims(x.shape) for x in (query, value)]
        config = topi.x86.choose_attention(rows, columns, query.dtype)
    options = (attrs.scale, attrs.fill, attrs.heads, attrs.merge_heads)
    return [topi.nn.attention(query, key, value, bias, keep, *options, config)]


@operator(
    "nn.contrib_attention",
    "AttentionAttrs",
    infer_type=_attention_type,
    fuse=OpPattern.OUT_ELEMWISE_FUSABLE,
    compute=_compute,
    schedules=default_schedules(topi.x86.schedule_attention),
    precision=Precision.ALWAYS,
)
def contrib_attention(
    query: Expr,
    key: Expr,
    value: Expr,
    masks: Expr,
    scale: float = 1.0,
    fill: float = 0.0,
    has_bias: bool = False,
    has_keep: bool = False,
    heads: int = 1,
    merge_heads: bool = False,
) -> RelayExpr:
    """softmax(query @ key.T * scale + bias) @ value

    Parameters
    ----------
    query, key, value : relay.Expr
        (batch * heads, rows, width).
    masks : relay.Expr
        A tuple of what is added to the scores (`has_bias`) and of where they are kept (`has_keep`).
    scale, fill : float
        The scores' factor, and what takes the place of those that are not kept.
    has_bias, has_keep : bool
        Which masks there are.
    heads : int
        The number of heads.
    merge_heads : bool
        Give (batch, queries, heads * width).
    """
