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
from ..types import expect, expect_dim, expect_same_dtype, expect_tensor, shape_of_type, tensor


def _attention_type(attrs: Any, arg_types: Sequence[Type]) -> Type:
    who = "nn.contrib_attention"
    names = ("query", "key", "value")
    found = [
        expect_tensor(ty, who, name, rank=3) for ty, name in zip(arg_types[:3], names, strict=True)
    ]
    dtype = expect_same_dtype(found, who)
    query, key, value = [shape_of_type(ty) for ty in found]
    for shape, name in ((key, "key"), (value, "value")):
        expect_dim(shape[0], query[0], who, f"{name}'s batch")
    expect_dim(key[2], query[2], who, "the keys' depth")
    expect_dim(value[1], key[1], who, "the number of values")
    masks = arg_types[3]
    count = int(attrs.has_bias) + int(attrs.has_keep)
    expect(
        isinstance(masks, TupleType) and len(masks.fields) == count,
        f"{who} requires a tuple of {count} masks",
    )
    if not attrs.merge_heads:
        return tensor((query[0], query[1], value[2]), dtype)
    return tensor((query[0] // attrs.heads, query[1], attrs.heads * value[2]), dtype)


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
