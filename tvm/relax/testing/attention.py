"""Programs of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.module import IRModule
from tvm.relax import op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Var
from tvm.relax.struct_info import TensorStructInfo


def get_relax_attention_module(
    q_shape: Sequence[Any],
    k_shape: Sequence[Any],
    v_shape: Sequence[Any],
    *,
    dtype: str,
    bias_shape: Sequence[Any] | None = None,
    qk_scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> IRModule:
    """A module whose ``main`` computes attention of ``q``, ``k`` and ``v``.

    Parameters
    ----------
    q_shape, k_shape, v_shape : sequence of int or PrimExpr
        (batch, length, heads, size).
    dtype : str
    bias_shape : sequence, optional
        Of the parameter ``bias``.
    qk_scale, causal_mask, window_size
        As of `tvm.relax.op.nn.attention`.
    """
    shapes = {"q": q_shape, "k": k_shape, "v": v_shape}
    params = [Var(name, TensorStructInfo(shape, dtype)) for name, shape in shapes.items()]
    if bias_shape is not None and tuple(bias_shape) != ("none",):
        params.append(Var("bias", TensorStructInfo(bias_shape, dtype)))
    bias = params[3] if len(params) == 4 else None
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            q, k, v = params[:3]
            found = op.nn.attention(q, k, v, bias, qk_scale, causal_mask, window_size)
            out = builder.emit_output(found)
        builder.emit_func_output(out)
    return builder.finalize()


def get_relax_stacked_attention_module(
    qkv: Any,
    b: int,
    s: int,
    n: int,
    h: int,
    h_v: int,
    op: str,
    bias: Any = None,
    qk_scale: float | None = None,
    single_shape: bool = False,
    layout: str = "BS3NH",
) -> IRModule:
    """A module whose ``main`` takes one tensor apart into the operands of attention.

    Parameters
    ----------
    qkv : array
        Whose shape and data type the parameter has.
    b, s, n, h, h_v : int
        Batch, length, heads, and their size in queries and keys, and in values.
    op : str
        ``"split"`` or ``"strided_slice"``.
    bias : array, optional
        Whose shape and data type the parameter ``bias`` has.
    qk_scale : float, optional
    single_shape : bool
        Whether queries, keys and values are reshaped by one shape.
    layout : str
        ``"BS3NH"``: (b, s, 3 * n * h); ``"SBN3H"``: (s, b, n, 3 * h).
    """
    if layout not in ("BS3NH", "SBN3H"):
        raise ValueError(f"layout must be BS3NH or SBN3H, got {layout!r}")
    params = [Var("qkv", TensorStructInfo(qkv.shape, str(qkv.dtype)))]
    if bias is not None:
        params.append(Var("bias", TensorStructInfo(bias.shape, str(bias.dtype))))
    is_flat = layout == "BS3NH"
    sizes = [n * h, n * h, n * h_v] if is_flat else [h, h, h_v]
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            pieces = _pieces(builder, params[0], sizes, op, 2 if is_flat else 3)
            shapes = [[b, s, n, h], [b, s, n, h], [b, s, n, h if single_shape else h_v]]
            out = _attention(builder, pieces, shapes, params[1:], qk_scale, is_flat)
        builder.emit_func_output(out)
    return builder.finalize()


def _pieces(builder: BlockBuilder, whole: Var, sizes: list[int], how: str, axis: int) -> list[Any]:
    ends = [sum(sizes[: i + 1]) for i in range(3)]
    if how == "split":
        parts = builder.emit(op.split(whole, ends[:2], axis))
        return [builder.emit(parts[i]) for i in range(3)]
    if how == "strided_slice":
        starts = [0, *ends[:2]]
        return [
            builder.emit(op.strided_slice(whole, [axis], [start], [end], [1]))
            for start, end in zip(starts, ends, strict=True)
        ]
    raise ValueError(f"op must be split or strided_slice, got {how!r}")


def _attention(
    builder: BlockBuilder,
    pieces: list[Any],
    shapes: list[list[int]],
    bias: Sequence[Var],
    scale: float | None,
    is_flat: bool,
) -> Var:
    """Attention of pieces, reshaped or with their axes permuted; the result in their layout."""
    if is_flat:
        parts = [builder.emit(op.reshape(p, s)) for p, s in zip(pieces, shapes, strict=True)]
    else:
        parts = [builder.emit(op.permute_dims(p, [1, 0, 2, 3])) for p in pieces]
    query, key, value = parts
    found = op.nn.attention(query, key, value, bias[0] if bias else None, scale)
    if is_flat:
        return builder.emit_output(found)
    return builder.emit_output(op.permute_dims(builder.emit(found), [1, 0, 2, 3]))
