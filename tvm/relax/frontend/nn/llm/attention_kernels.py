"""Attention over pages of keys and values, as loop programs for processors.

for sequence: for kv head: keys side by side, values one after the other, gathered once
    for tile of rows, in parallel: for panel of keys:
        S = Q[tile] @ K[panel]; result = result * exp(old - new largest) + exp(S - new largest) @ V[panel]

The last results are the logarithms, of base 2, of the sums of exponentials, by which parts of
attention over different keys are merged.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-redef,misc,no-any-return"

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tvm import tir
from tvm.relax.frontend.nn.llm.position_embedding import switch_rope_freq_func
from tvm.script import tir as T

ROWS, COLUMNS, LANES = 8, 32, 16
LOWEST, LOG2_E = -1e30, math.log2(math.e)
INLINE = 1  # of the argument rotary_mode


def _turn(x: Any, other: Any, d: Any, depth: int, position: Any, theta: Any, scaling: Any) -> Any:
    """An element with rotary embedding; `other` is its partner in the pair."""
    cosine, sine, values = switch_rope_freq_func(scaling)(position, d, depth, theta, "float32")
    sign = tir.Select(d < depth // 2, tir.const(-1.0, "float32"), tir.const(1.0, "float32"))
    turned: Any = cosine * x + sine * sign * other
    for var, value in values.items():
        turned = tir.Let(var, value, turned)
    return turned


def attention_prefill(
    h_kv: int, h_q: int, d: int, dtype: str, sliding_window: bool, rope_scaling: Mapping[str, Any]
) -> tir.PrimFunc:
    """Attention of several queries a sequence over pages, the last of which have their own keys.

    Parameters
    ----------
    h_kv, h_q, d : int
        Heads of keys and of queries, and their depth.
    dtype : str
        Of all tensors; sums are of float32.
    sliding_window : bool
        Whether lengths are of shape (3, sequences): slots in use of the last page, the first slot
        that is seen, and the slots before it that are seen too.
    rope_scaling : dict
        Of the rotary embedding in the kernel.
    """
    core = _core(h_kv, h_q, d, dtype, rope_scaling)
    gather = gather_element(d, rope_scaling)
    slot_of = slot_in_window(sliding_window)

    @T.prim_func
    def attention_prefill_cpu(
        var_q: T.handle, var_q_indptr: T.handle, var_pages: T.handle, var_page_indptr: T.handle,
        var_page_values: T.handle, var_length_info: T.handle, var_k_rope_pos_offset: T.handle,
        var_q_rope_position: T.handle, var_output: T.handle, var_lse: T.handle, causal: T.int32,
        rotary_mode: T.int32, rope_scale: T.float32, rope_theta: T.float32,
        attn_score_scaling_factor: T.float32,
    ) -> None:  # fmt: skip
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": 1})
        sequences = T.int32(is_size_var=True)
        tokens = T.int32(is_size_var=True)
        page_count = T.int32(is_size_var=True)
        used_pages = T.int32(is_size_var=True)
        page_size = T.int32(is_size_var=True)
        q = T.match_buffer(var_q, (tokens, h_q, d), dtype)
        q_start = T.match_buffer(var_q_indptr, (sequences + 1,), "int32")
        pages = T.match_buffer(var_pages, (page_count, 2, h_kv, page_size, d), dtype)
        page_start = T.match_buffer(var_page_indptr, (sequences + 1,), "int32")
        table = T.match_buffer(var_page_values, (used_pages,), "int32")
        lengths = T.match_buffer(var_length_info, lengths_shape(sliding_window, sequences), "int32")
        k_offset = T.match_buffer(var_k_rope_pos_offset, (sequences,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (tokens,), "int32")
        output = T.match_buffer(var_output, (tokens, h_q, d), dtype)
        lse = T.match_buffer(var_lse, (tokens, h_q), "float32")
        for b in T.serial(sequences):
            first_page: T.int32 = page_start[b]
            count: T.int32 = page_start[b + 1] - first_page
            kv: T.int32 = T.if_then_else(
                count == 0, 0, (count - 1) * page_size + visible_slots(lengths, b, sliding_window)
            )
            padded: T.int32 = T.max((kv + COLUMNS - 1) // COLUMNS, 1) * COLUMNS
            keys = T.decl_buffer((h_kv * d * padded,), "float32")
            values = T.decl_buffer((h_kv * d * padded,), "float32")
            for h in T.parallel(h_kv):
                for j in T.serial(padded):
                    if j < kv:
                        slot: T.int32 = slot_of(lengths, b, j)
                        page: T.int32 = table[first_page + slot // page_size]
                        at: T.int32 = slot % page_size
                        for x in T.serial(d):
                            keys[(h * d + x) * padded + j] = gather(
                                pages, (page, 0, h, at), x, rotary_mode,
                                (k_offset[b] + j) * rope_scale, rope_theta,
                            )  # fmt: skip
                            values[(h * padded + j) * d + x] = T.Cast(
                                "float32", pages[page, 1, h, at, x]
                            )
                    else:
                        for x in T.serial(d):
                            keys[(h * d + x) * padded + j] = T.float32(0)
                            values[(h * padded + j) * d + x] = T.float32(0)
            core(
                q, q_start[b], q_start[b + 1] - q_start[b], q_position, keys, values, kv, padded,
                output, lse, causal, rotary_mode, rope_scale, rope_theta, attn_score_scaling_factor,
            )  # fmt: skip

    name = "attention_prefill_cpu" + "_sliding_window" * sliding_window
    found: tir.PrimFunc = attention_prefill_cpu.with_attr("global_symbol", name)
    return found


def attention_prefill_ragged(
    h_kv: int, h_q: int, d: int, dtype: str, rope_scaling: Mapping[str, Any]
) -> tir.PrimFunc:
    """Attention of several queries a sequence over keys and values that stand one after the other.

    Parameters as of `attention_prefill`.
    """
    core = _core(h_kv, h_q, d, dtype, rope_scaling)
    gather = gather_element(d, rope_scaling)

    @T.prim_func
    def attention_prefill_ragged_cpu(
        var_q: T.handle, var_q_indptr: T.handle, var_k: T.handle, var_v: T.handle,
        var_kv_indptr: T.handle, var_q_rope_position: T.handle, var_k_rope_pos_offset: T.handle,
        var_output: T.handle, var_lse: T.handle, causal: T.int32, rotary_mode: T.int32,
        rope_scale: T.float32, rope_theta: T.float32, attn_score_scaling_factor: T.float32,
    ) -> None:  # fmt: skip
        T.func_attr({"tir.noalias": True, "tir.is_scheduled": 1})
        sequences = T.int32(is_size_var=True)
        tokens = T.int32(is_size_var=True)
        kv_tokens = T.int32(is_size_var=True)
        q = T.match_buffer(var_q, (tokens, h_q, d), dtype)
        q_start = T.match_buffer(var_q_indptr, (sequences + 1,), "int32")
        k = T.match_buffer(var_k, (kv_tokens, h_kv, d), dtype)
        v = T.match_buffer(var_v, (kv_tokens, h_kv, d), dtype)
        kv_start = T.match_buffer(var_kv_indptr, (sequences + 1,), "int32")
        q_position = T.match_buffer(var_q_rope_position, (tokens,), "int32")
        k_offset = T.match_buffer(var_k_rope_pos_offset, (sequences,), "int32")
        output = T.match_buffer(var_output, (tokens, h_q, d), dtype)
        lse = T.match_buffer(var_lse, (tokens, h_q), "float32")
        for b in T.serial(sequences):
            first: T.int32 = kv_start[b]
            kv: T.int32 = kv_start[b + 1] - first
            padded: T.int32 = T.max((kv + COLUMNS - 1) // COLUMNS, 1) * COLUMNS
            keys = T.decl_buffer((h_kv * d * padded,), "float32")
            values = T.decl_buffer((h_kv * d * padded,), "float32")
            for h in T.parallel(h_kv):
                for j in T.serial(padded):
                    if j < kv:
                        for x in T.serial(d):
                            keys[(h * d + x) * padded + j] = gather(
                                k, (first + j, h), x, rotary_mode,
                                (k_offset[b] + j) * rope_scale, rope_theta,
                            )  # fmt: skip
                            values[(h * padded + j) * d + x] = T.Cast("float32", v[first + j, h, x])
                    else:
                        for x in T.serial(d):
                            keys[(h * d + x) * padded + j] = T.float32(0)
                            values[(h * padded + j) * d + x] = T.float32(0)
            core(
                q, q_start[b], q_start[b + 1] - q_start[b], q_position, keys, values, kv, padded,
                output, lse, causal, rotary_mode, rope_scale, rope_theta, attn_score_scaling_factor,
            )  # fmt: skip

    found: tir.PrimFunc = attention_prefill_ragged_cpu
    return found


def lengths_shape(sliding_window: bool, sequences: Any) -> tuple[Any, ...]:
    return (3, sequences) if sliding_window else (sequences,)


def visible_slots(lengths: Any, b: Any, sliding_window: bool) -> Any:
    """Slots of the last page in use, less those before it that are not seen."""
    return lengths[0, b] - lengths[1, b] + lengths[2, b] if sliding_window else lengths[b]


def slot_in_window(sliding_window: bool) -> Any:
    """The slot of the key with that number among those that are seen."""

    def slot_of(lengths: Any, b: Any, j: Any) -> Any:
        if not sliding_window:
            return j
        return tir.Select(j < lengths[2, b], j, j - lengths[2, b] + lengths[1, b])

    return slot_of


def gather_element(d: int, rope_scaling: Any) -> Any:
    """An element of a key, turned in the kernel if the rotary mode says so."""

    def gather(
        tensor: Any, at: tuple[Any, ...], x: Any, mode: Any, position: Any, theta: Any
    ) -> Any:
        here = tir.BufferLoad(tensor, [*at, x]).astype("float32")
        other = tir.BufferLoad(tensor, [*at, (x + d // 2) % d]).astype("float32")
        place = position.astype("float32")
        turned = _turn(here, other, x, d, place, theta, rope_scaling)
        return tir.if_then_else(mode == INLINE, turned, here)

    return gather


def _core(h_kv: int, h_q: int, d: int, dtype: str, rope_scaling: Any) -> Any:
    """Tiles of rows over gathered keys and values of one sequence."""
    gather, group, scale = gather_element(d, rope_scaling), h_q // h_kv, d**-0.5

    scores, exponentials, products = _panels(d)
    store = store_row(d, dtype)

    @T.macro
    def attend(
        q, first, count, q_position, keys, values, kv, padded, output, lse, causal, rotary_mode,
        rope_scale, rope_theta, factor,
    ):  # fmt: skip
        tiles: T.int32 = (count + ROWS - 1) // ROWS
        for task in T.parallel(h_q * tiles):
            h: T.int32 = task // tiles
            row: T.int32 = (task % tiles) * ROWS
            Q = T.decl_buffer((ROWS * d,), "float32", scope="local")
            S = T.decl_buffer((ROWS * COLUMNS,), "float32", scope="local")
            result = T.decl_buffer((ROWS * d,), "float32", scope="local")
            largest = T.decl_buffer((ROWS,), "float32", scope="local")
            total = T.decl_buffer((ROWS,), "float32", scope="local")
            for r in T.serial(ROWS):
                i: T.int32 = first + T.min(row + r, count - 1)
                largest[r] = T.float32(LOWEST)
                total[r] = T.float32(0)
                for x in T.serial(d):
                    result[r * d + x] = T.float32(0)
                    Q[r * d + x] = (
                        gather(q, (i, h), x, rotary_mode, q_position[i] * rope_scale, rope_theta)
                        * factor
                        * T.float32(scale)
                    )
            # keys that the last row sees
            seen: T.int32 = T.if_then_else(
                causal != 0, T.min(kv, T.max(kv - count + row + ROWS, 0)), kv
            )
            for panel in T.serial((seen + COLUMNS - 1) // COLUMNS):
                scores(S, Q, keys, h // group, padded, panel)
                for r in T.serial(ROWS):
                    limit: T.int32 = T.if_then_else(
                        causal != 0, T.min(kv, kv - count + row + r + 1), kv
                    )
                    exponentials(S, result, largest, total, r, limit, panel)
                products(S, result, values, h // group, padded, panel)
            for r in T.serial(ROWS):
                if row + r < count:
                    store(result, largest, total, r, output, lse, first + row + r, h)

    return attend


def store_row(d: int, dtype: str) -> Any:
    """A macro: the result of a row, zero if it saw no key, and the logarithm of its sum."""

    @T.macro
    def store(result, largest, total, r, output, lse, i, h):
        for x in T.vectorized(d):
            output[i, h, x] = T.Cast(
                dtype,
                T.Select(total[r] > T.float32(0), result[r * d + x] / total[r], T.float32(0)),
            )
        lse[i, h] = T.Select(
            total[r] > T.float32(0),
            largest[r] * T.float32(LOG2_E) + T.log2(total[r]),
            T.float32(LOWEST),
        )

    return store


def _panels(d: int) -> tuple[Any, Any, Any]:
    """Macros of a tile of rows and a panel of keys: scores, exponentials, and products with values."""

    @T.macro
    def scores(S, Q, keys, base, padded, panel):
        for r in T.unroll(ROWS):
            for c in T.vectorized(COLUMNS):
                S[r * COLUMNS + c] = T.float32(0)
        for x in T.serial(d):
            for r in T.unroll(ROWS):
                for c in T.vectorized(COLUMNS):
                    S[r * COLUMNS + c] = (
                        S[r * COLUMNS + c]
                        + Q[r * d + x] * keys[(base * d + x) * padded + panel * COLUMNS + c]
                    )

    @T.macro
    def exponentials(S, result, largest, total, r, limit, panel):
        # the largest score of the row so far, then exponentials in place of scores
        part = T.decl_buffer((LANES,), "float32", scope="local")
        top = T.decl_buffer((1,), "float32", scope="local")
        for c in T.vectorized(COLUMNS):
            S[r * COLUMNS + c] = T.Select(
                panel * COLUMNS + c < limit, S[r * COLUMNS + c], T.float32(LOWEST)
            )
        for c in T.vectorized(LANES):
            part[c] = T.max(S[r * COLUMNS + c], S[r * COLUMNS + LANES + c])
        top[0] = largest[r]
        for c in T.unroll(LANES):
            top[0] = T.max(top[0], part[c])
        shrunk: T.float32 = T.exp(largest[r] - top[0])
        for c in T.vectorized(COLUMNS):
            S[r * COLUMNS + c] = T.Select(
                panel * COLUMNS + c < limit,
                T.exp(S[r * COLUMNS + c] - top[0]),
                T.float32(0),
            )
        for c in T.vectorized(LANES):
            part[c] = S[r * COLUMNS + c] + S[r * COLUMNS + LANES + c]
        total[r] = total[r] * shrunk
        for c in T.unroll(LANES):
            total[r] = total[r] + part[c]
        largest[r] = top[0]
        for x in T.vectorized(d):
            result[r * d + x] = result[r * d + x] * shrunk

    @T.macro
    def products(S, result, values, base, padded, panel):
        for r in T.serial(ROWS):
            for c in T.serial(COLUMNS):
                for x in T.vectorized(d):
                    result[r * d + x] = (
                        result[r * d + x]
                        + S[r * COLUMNS + c] * values[(base * padded + panel * COLUMNS + c) * d + x]
                    )

    return scores, exponentials, products
