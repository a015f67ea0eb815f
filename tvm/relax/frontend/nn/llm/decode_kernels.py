"""Attention of one query a sequence, and what else a paged cache does, as loop programs for processors."""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-redef,misc,no-any-return"

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import tir
from tvm.script import tir as T

from .attention_kernels import (
    INLINE,
    LANES,
    LOWEST,
    gather_element,
    lengths_shape,
    slot_in_window,
    store_row,
    visible_slots,
)

CHUNK = 16  # keys whose exponentials are taken together


def attention_decode(
    h_kv: int, h_q: int, d: int, dtype: str, sliding_window: bool, rope_scaling: Mapping[str, Any]
) -> tir.PrimFunc:
    """Attention of one query a sequence over pages. Parameters as of `attention_prefill`."""
    gather, group, scale = gather_element(d, rope_scaling), h_q // h_kv, d**-0.5
    slot_of = slot_in_window(sliding_window)
    score, rescale, store = _score(d, gather), _rescale(d), store_row(d, dtype)

    @T.prim_func
    def attention_decode_cpu(
        var_q: T.handle, var_pages: T.handle, var_page_indptr: T.handle, var_page_values: T.handle,
        var_length_info: T.handle, var_k_rope_pos_offset: T.handle, var_q_rope_position: T.handle,
        var_output: T.handle, var_lse: T.handle, rotary_mode: T.int32, rope_scale: T.float32,
        rope_theta: T.float32, attn_score_scaling_factor: T.float32,
    ) -> None:  # fmt: skip
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": 1})
        sequences = T.int32(is_size_var=True)
        page_count = T.int32(is_size_var=True)
        used_pages = T.int32(is_size_var=True)
        page_size = T.int32(is_size_var=True)
        q = T.match_buffer(var_q, (sequences, h_q, d), dtype)
        pages = T.match_buffer(var_pages, (page_count, 2, h_kv, page_size, d), dtype)
        page_start = T.match_buffer(var_page_indptr, (sequences + 1,), "int32")
        table = T.match_buffer(var_page_values, (used_pages,), "int32")
        lengths = T.match_buffer(var_length_info, lengths_shape(sliding_window, sequences), "int32")
        k_offset = T.match_buffer(var_k_rope_pos_offset, (sequences,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (sequences,), "int32")
        output = T.match_buffer(var_output, (sequences, h_q, d), dtype)
        lse = T.match_buffer(var_lse, (sequences, h_q), "float32")
        for task in T.parallel(sequences * h_q):
            b: T.int32 = task // h_q
            h: T.int32 = task % h_q
            first_page: T.int32 = page_start[b]
            count: T.int32 = page_start[b + 1] - first_page
            kv: T.int32 = T.if_then_else(
                count == 0, 0, (count - 1) * page_size + visible_slots(lengths, b, sliding_window)
            )
            Q = T.decl_buffer((d,), "float32", scope="local")
            K = T.decl_buffer((d,), "float32", scope="local")
            result = T.decl_buffer((d,), "float32", scope="local")
            S = T.decl_buffer((CHUNK,), "float32", scope="local")
            total = T.decl_buffer((1,), "float32", scope="local")
            largest = T.decl_buffer((2,), "float32", scope="local")
            largest[0] = T.float32(LOWEST)
            total[0] = T.float32(0)
            for x in T.serial(d):
                result[x] = T.float32(0)
                Q[x] = (
                    gather(q, (b, h), x, rotary_mode, q_position[b] * rope_scale, rope_theta)
                    * attn_score_scaling_factor
                    * T.float32(scale)
                )
            for chunk in T.serial((kv + CHUNK - 1) // CHUNK):
                largest[1] = largest[0]
                for c in T.serial(CHUNK):
                    slot: T.int32 = slot_of(lengths, b, T.min(chunk * CHUNK + c, kv - 1))
                    rope_at: T.float32 = (k_offset[b] + chunk * CHUNK + c) * rope_scale
                    page: T.int32 = table[first_page + slot // page_size]
                    score(
                        Q, K, S, c, pages, page, h // group, slot % page_size, rotary_mode,
                        rope_at, rope_theta, chunk * CHUNK + c < kv, largest,
                    )  # fmt: skip
                rescale(S, result, largest, total)
                for c in T.serial(CHUNK):
                    slot: T.int32 = slot_of(lengths, b, T.min(chunk * CHUNK + c, kv - 1))
                    page: T.int32 = table[first_page + slot // page_size]
                    for x in T.vectorized(d):
                        result[x] = result[x] + S[c] * T.Cast(
                            "float32", pages[page, 1, h // group, slot % page_size, x]
                        )
            store(result, largest, total, 0, output, lse, b, h)

    suffix = "_sliding_window" * sliding_window
    found: tir.PrimFunc = attention_decode_cpu.with_attr(
        "global_symbol", f"attention_decode_cpu{suffix}"
    )
    return found


def _score(d: int, gather: Any) -> Any:
    """A macro: the score of one key, and the largest so far; below all others beyond the last."""
    width = LANES if d % LANES == 0 else 1

    @T.macro
    def score(Q, K, S, c, pages, page, head, at, mode, position, theta, is_key, largest):
        part = T.decl_buffer((width,), "float32", scope="local")
        if mode == INLINE:
            for x in T.serial(d):
                K[x] = gather(pages, (page, 0, head, at), x, mode, position, theta)
        else:
            for x in T.vectorized(d):
                K[x] = T.Cast("float32", pages[page, 0, head, at, x])
        for x in T.vectorized(width):
            part[x] = T.float32(0)
        for y in T.unroll(d // width):
            for x in T.vectorized(width):
                part[x] = part[x] + Q[y * width + x] * K[y * width + x]
        S[c] = T.float32(0)
        for x in T.unroll(width):
            S[c] = S[c] + part[x]
        if is_key:
            largest[1] = T.max(largest[1], S[c])
        else:
            S[c] = T.float32(LOWEST)

    return score


def _rescale(d: int) -> Any:
    """A macro: exponentials in place of scores, and what was summed before in their scale."""

    @T.macro
    def rescale(S, result, largest, total):
        shrunk: T.float32 = T.exp(largest[0] - largest[1])
        for c in T.vectorized(CHUNK):
            S[c] = T.exp(S[c] - largest[1])
        largest[0] = largest[1]
        total[0] = total[0] * shrunk
        for c in T.unroll(CHUNK):
            total[0] = total[0] + S[c]
        for x in T.vectorized(d):
            result[x] = result[x] * shrunk

    return rescale


def merge_state_inplace(dtype: str) -> tir.PrimFunc:
    """Merge attention over other keys into attention over some: results and logarithms of sums."""

    @T.prim_func
    def merge_state_inplace_cpu(
        v: T.handle, s: T.handle, v_other: T.handle, s_other: T.handle
    ) -> None:
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": 1})
        tokens = T.int32(is_size_var=True)
        heads = T.int32(is_size_var=True)
        depth = T.int32(is_size_var=True)
        V = T.match_buffer(v, (tokens, heads, depth), dtype)
        S = T.match_buffer(s, (tokens, heads), "float32")
        V_other = T.match_buffer(v_other, (tokens, heads, depth), dtype)
        S_other = T.match_buffer(s_other, (tokens, heads), "float32")
        for i in T.parallel(tokens):
            for h in T.serial(heads):
                top: T.float32 = T.max(S[i, h], S_other[i, h])
                own: T.float32 = T.exp2(S[i, h] - top)
                other: T.float32 = T.exp2(S_other[i, h] - top)
                for x in T.serial(depth):
                    V[i, h, x] = T.Cast(
                        dtype,
                        (
                            T.Cast("float32", V[i, h, x]) * own
                            + T.Cast("float32", V_other[i, h, x]) * other
                        )
                        / (own + other),
                    )
                S[i, h] = T.log2(own + other) + top

    found: tir.PrimFunc = merge_state_inplace_cpu
    return found


def transpose_append(h_kv: int, d: int, dtype: str) -> tir.PrimFunc:
    """Write keys and values of tokens to their slots."""

    @T.prim_func
    def kv_cache_transpose_append(
        var_pages: T.handle, var_k_data: T.handle, var_v_data: T.handle, var_position_map: T.handle
    ) -> None:
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": 1})
        tokens = T.int32(is_size_var=True)
        page_count = T.int32(is_size_var=True)
        page_size = T.int32(is_size_var=True)
        pages = T.match_buffer(var_pages, (page_count, 2, h_kv, page_size, d), dtype)
        k = T.match_buffer(var_k_data, (tokens, h_kv, d), dtype)
        v = T.match_buffer(var_v_data, (tokens, h_kv, d), dtype)
        slots = T.match_buffer(var_position_map, (tokens,), "int32")
        for i in T.serial(tokens):
            page: T.int32 = slots[i] // page_size
            at: T.int32 = slots[i] % page_size
            for h in T.serial(h_kv):
                for x in T.vectorized(d):
                    pages[page, 0, h, at, x] = k[i, h, x]
                    pages[page, 1, h, at, x] = v[i, h, x]

    found: tir.PrimFunc = kv_cache_transpose_append
    return found


def debug_get_kv(layers: int, h_kv: int, d: int, dtype: str) -> tir.PrimFunc:
    """Read keys and values of slots into those of one layer."""

    @T.prim_func
    def kv_cache_debug_get_kv(
        var_pages: T.handle, var_position_map: T.handle, var_k_data: T.handle,
        var_v_data: T.handle, layer_id: T.int64,
    ) -> None:  # fmt: skip
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": 1})
        tokens = T.int32(is_size_var=True)
        page_count = T.int32(is_size_var=True)
        page_size = T.int32(is_size_var=True)
        pages = T.match_buffer(var_pages, (page_count, 2, h_kv, page_size, d), dtype)
        slots = T.match_buffer(var_position_map, (tokens,), "int32")
        k = T.match_buffer(var_k_data, (layers, tokens, h_kv, d), dtype)
        v = T.match_buffer(var_v_data, (layers, tokens, h_kv, d), dtype)
        for i in T.serial(tokens):
            page: T.int32 = slots[i] // page_size
            at: T.int32 = slots[i] % page_size
            for h in T.serial(h_kv):
                for x in T.vectorized(d):
                    k[layer_id, i, h, x] = pages[page, 0, h, at, x]
                    v[layer_id, i, h, x] = pages[page, 1, h, at, x]

    found: tir.PrimFunc = kv_cache_debug_get_kv
    return found


def copy_single_page(h_kv: int, d: int, dtype: str) -> tir.PrimFunc:
    """Copy the first slots of a page to another."""

    @T.prim_func
    def copy_single_page_cpu(
        var_pages: T.handle, src_page_id: T.int64, tgt_page_id: T.int64, copy_length: T.int64
    ) -> None:
        T.func_attr({"tir.is_scheduled": 1})
        page_count = T.int32(is_size_var=True)
        page_size = T.int32(is_size_var=True)
        pages = T.match_buffer(var_pages, (page_count, 2, h_kv, page_size, d), dtype)
        for kind, h in T.grid(2, h_kv):
            for at in T.serial(copy_length):
                for x in T.vectorized(d):
                    pages[tgt_page_id, kind, h, at, x] = pages[src_page_id, kind, h, at, x]

    found: tir.PrimFunc = copy_single_page_cpu
    return found


def compact_kv_copy(h_kv: int, d: int, dtype: str) -> tir.PrimFunc:
    """Move slots of each sequence: pairs of from and to, first all of the former."""

    @T.prim_func
    def compact_kv_copy_cpu(
        var_pages: T.handle, var_copy_length_indptr: T.handle, var_copy_src_dst_pos: T.handle,
        batch_size: T.int32,
    ) -> None:  # fmt: skip
        T.func_attr({"tir.is_scheduled": 1})
        page_count = T.int32(is_size_var=True)
        page_size = T.int32(is_size_var=True)
        bounds = T.int32(is_size_var=True)
        moves = T.int32(is_size_var=True)
        pages = T.match_buffer(var_pages, (page_count, 2, h_kv, page_size, d), dtype)
        start = T.match_buffer(var_copy_length_indptr, (bounds,), "int32")
        slots = T.match_buffer(var_copy_src_dst_pos, (2, moves), "int32")
        for b in T.serial(batch_size):
            for i in T.serial(start[b + 1] - start[b]):
                source: T.int32 = slots[0, start[b] + i]
                target: T.int32 = slots[1, start[b] + i]
                for kind, h in T.grid(2, h_kv):
                    for x in T.vectorized(d):
                        pages[target // page_size, kind, h, target % page_size, x] = pages[
                            source // page_size, kind, h, source % page_size, x
                        ]

    found: tir.PrimFunc = compact_kv_copy_cpu
    return found
