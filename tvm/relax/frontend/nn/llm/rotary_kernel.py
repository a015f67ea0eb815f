"""Splitting queries, keys and values, the first two with rotary embeddings of given positions."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-redef,misc,no-any-return"

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tvm import tir
from tvm.script import tir as T

from .position_embedding import switch_rope_freq_func


def llama_rope_with_position_map(
    theta: float,
    scale: float,
    head_dim: int,
    num_q_heads: int,
    num_kv_heads: int,
    dtype: str,
    rope_scaling: Mapping[str, Any],
    rotary_dim: int | None = None,
) -> tir.PrimFunc:
    """A function that splits qkv and turns queries and keys of given positions.

    Its arguments are qkv (tokens, heads, head_dim), positions (tokens), the results, and whether to
    turn; with ``longrope`` the factors of pairs instead of the last.

    Parameters
    ----------
    theta, scale : float
        The base of the angles, and a factor of positions.
    rope_scaling : dict
        As of `switch_rope_freq_func`.
    rotary_dim : int, optional
        The elements that are turned, by default all.
    """
    dims, is_long = rotary_dim or head_dim, (rope_scaling or {}).get("rope_type") == "longrope"
    steps = _steps(theta, scale, head_dim, dims, dtype, rope_scaling, is_long)
    make = _with_factors if is_long else _with_flag
    return make(steps, head_dim, dims // 2, num_q_heads, num_kv_heads, dtype)


class _Steps(NamedTuple):
    """Macros: the angles of a position, and heads that are turned or copied."""

    angles: Any
    turn: Any
    copy: Any


def _steps(
    theta: float, scale: float, depth: int, dims: int, dtype: str, scaling: Any, is_long: bool
) -> _Steps:
    half, frequencies = dims // 2, switch_rope_freq_func(scaling)

    def angle(which: int, position: Any, d: Any, factors: Any) -> Any:
        options = {"ext_factors": factors} if is_long else {}
        at = position.astype("float32") * tir.const(scale, "float32")
        found = frequencies(at, d, dims, theta, "float32", **options)
        value: Any = found[which]
        for var, what in found[2].items():
            value = tir.Let(var, what, value)
        return value

    @T.macro
    def angles(position, factors, cosine, sine):
        for d in T.vectorized(half):
            cosine[d] = angle(0, position, d, factors)
            sine[d] = angle(1, position, d, factors)

    @T.macro
    def turn(qkv, s, first, count, out, cosine, sine):
        for h in T.serial(count):
            for d in T.vectorized(half):
                x = T.Cast("float32", qkv[s, h + first, d])
                y = T.Cast("float32", qkv[s, h + first, d + half])
                out[s, h, d] = T.Cast(dtype, x * cosine[d] - y * sine[d])
                out[s, h, d + half] = T.Cast(dtype, y * cosine[d] + x * sine[d])
            for d in T.serial(depth - dims):
                out[s, h, d + dims] = qkv[s, h + first, d + dims]

    @T.macro
    def copy(qkv, s, first, count, out):
        for h in T.serial(count):
            for d in T.vectorized(depth):
                out[s, h, d] = qkv[s, h + first, d]

    return _Steps(angles, turn, copy)


def _with_flag(
    steps: _Steps, depth: int, half: int, h_q: int, h_kv: int, dtype: str
) -> tir.PrimFunc:
    angles, turn, copy = steps

    @T.prim_func(private=True)
    def split_rotary(
        var_qkv: T.handle, var_positions: T.handle, var_q: T.handle, var_k: T.handle,
        var_v: T.handle, apply_rope: T.int32,
    ) -> None:  # fmt: skip
        T.func_attr({"op_pattern": 8, "tir.noalias": True})
        tokens = T.int32(is_size_var=True)
        qkv = T.match_buffer(var_qkv, (tokens, h_q + 2 * h_kv, depth), dtype)
        positions = T.match_buffer(var_positions, (tokens,), "int32")
        q = T.match_buffer(var_q, (tokens, h_q, depth), dtype)
        k = T.match_buffer(var_k, (tokens, h_kv, depth), dtype)
        v = T.match_buffer(var_v, (tokens, h_kv, depth), dtype)
        for s in T.parallel(tokens):
            cosine = T.decl_buffer((half,), "float32", scope="local")
            sine = T.decl_buffer((half,), "float32", scope="local")
            if apply_rope > 0:
                angles(positions[s], positions, cosine, sine)
                turn(qkv, s, 0, h_q, q, cosine, sine)
                turn(qkv, s, h_q, h_kv, k, cosine, sine)
            else:
                copy(qkv, s, 0, h_q, q)
                copy(qkv, s, h_q, h_kv, k)
            copy(qkv, s, h_q + h_kv, h_kv, v)

    return split_rotary


def _with_factors(
    steps: _Steps, depth: int, half: int, h_q: int, h_kv: int, dtype: str
) -> tir.PrimFunc:
    angles, turn, copy = steps

    @T.prim_func(private=True)
    def split_rotary(
        var_qkv: T.handle, var_positions: T.handle, var_q: T.handle, var_k: T.handle,
        var_v: T.handle, var_factors: T.handle,
    ) -> None:  # fmt: skip
        T.func_attr({"op_pattern": 8, "tir.noalias": True})
        tokens = T.int32(is_size_var=True)
        qkv = T.match_buffer(var_qkv, (tokens, h_q + 2 * h_kv, depth), dtype)
        positions = T.match_buffer(var_positions, (tokens,), "int32")
        q = T.match_buffer(var_q, (tokens, h_q, depth), dtype)
        k = T.match_buffer(var_k, (tokens, h_kv, depth), dtype)
        v = T.match_buffer(var_v, (tokens, h_kv, depth), dtype)
        factors = T.match_buffer(var_factors, (half,), "float32")
        for s in T.parallel(tokens):
            cosine = T.decl_buffer((half,), "float32", scope="local")
            sine = T.decl_buffer((half,), "float32", scope="local")
            angles(positions[s], factors, cosine, sine)
            turn(qkv, s, 0, h_q, q, cosine, sine)
            turn(qkv, s, h_q, h_kv, k, cosine, sine)
            copy(qkv, s, h_q + h_kv, h_kv, v)

    return split_rotary
