"""Paged caches attend as numpy does over all keys and values so far, however sequences grow."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import spec
from tvm.relax.frontend.nn.llm import kv_cache
from tvm.relax.frontend.nn.llm.kv_cache import RopeMode, TIRPagedKVCache
from tvm.relax.frontend.nn.llm.position_embedding import llama_rope, switch_rope_freq_func
from tvm.runtime import ShapeTuple

LAYERS, HEADS, KV_HEADS, DEPTH, PAGE = 2, 4, 2, 16, 4
call = tvm.get_global_func


class Decoder(nn.Module):
    """Attention of two layers, and the functions that make its cache."""

    def __init__(self, rope_mode: RopeMode = RopeMode.NORMAL) -> None:
        self.rope_mode = rope_mode

    def attend(self, qkv: nn.Tensor, cache: kv_cache.PagedKVCache) -> Any:
        parts = [
            cache.attention_with_fused_qkv(layer, qkv, HEADS, 1.0 + layer)
            for layer in range(LAYERS)
        ]
        return nn.op.concat(parts, 0)

    def positions(self, qkv: nn.Tensor, cache: kv_cache.PagedKVCache) -> Any:
        return cache.get_query_positions(qkv.shape[1])

    def create(self, sequences: Any, tokens: Any, chunk: Any, windows: Any) -> Any:
        return TIRPagedKVCache(
            sequences, tokens, chunk, PAGE, windows, relax.ShapeExpr([0, LAYERS]), LAYERS, HEADS,
            KV_HEADS, self.rope_mode, DEPTH, 1.0, 1e4, {}, relax.PrimValue(0), DEPTH, "float32",
            tvm.target.Target("llvm"),
        )  # fmt: skip


@functools.cache
def machine(rope_mode: RopeMode) -> relax.VirtualMachine:
    qkv = spec.Tensor([1, "n", HEADS + 2 * KV_HEADS, DEPTH], "float32")
    cache = spec.Object(kv_cache.PagedKVCache)
    mod, _ = Decoder(rope_mode).export_tvm(
        {
            "attend": {"qkv": qkv, "cache": cache},
            "positions": {"qkv": qkv, "cache": cache},
            "create": {"sequences": int, "tokens": int, "chunk": int, "windows": int},
        }
    )
    return relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())


def turned(x: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Rotary embedding of (tokens, heads, depth)."""
    angle = positions[:, None, None] * 1e4 ** (-np.arange(DEPTH // 2) * 2 / DEPTH)
    a, b = np.split(x, 2, -1)
    return np.concatenate(
        [a * np.cos(angle) - b * np.sin(angle), b * np.cos(angle) + a * np.sin(angle)], -1
    )


class Reference:
    """What the cache is to do, on arrays."""

    def __init__(self, rope_mode: RopeMode) -> None:
        self.rope = turned if rope_mode else lambda x, positions: x
        self.sequences: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def append(self, sequence: int, qkv: np.ndarray) -> np.ndarray:
        keys, values = self.sequences[sequence]
        at = np.arange(len(keys), len(keys) + len(qkv))
        query, key, value = np.split(qkv, [HEADS, HEADS + KV_HEADS], 1)
        keys = np.concatenate([keys, self.rope(key, at)])
        values = np.concatenate([values, value])
        self.sequences[sequence] = keys, values
        return attention(self.rope(query, at), keys, values, np.arange(len(keys)) <= at[:, None])


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Of layers whose scores have factors 1 and 2."""
    k, v = [np.repeat(x, HEADS // KV_HEADS, 1) for x in (k, v)]
    scores = np.einsum("qhd,khd->hqk", q, k) * DEPTH**-0.5
    found = []
    for factor in (1.0, 2.0):
        weights = np.exp(np.where(mask, scores * factor, -np.inf))
        weights /= weights.sum(-1, keepdims=True)
        found.append(np.einsum("hqk,khd->qhd", weights, v))
    return np.stack(found)


def empty() -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((0, KV_HEADS, DEPTH)), np.zeros((0, KV_HEADS, DEPTH))


def attend(vm: Any, cache: Any, lengths: dict[int, int], qkv: np.ndarray) -> np.ndarray:
    begin, end = [call(f"vm.builtin.kv_state_{x}_forward") for x in ("begin", "end")]
    begin(cache, ShapeTuple(list(lengths)), ShapeTuple(list(lengths.values())))
    found = vm["attend"](tvm.nd.array(qkv[None]), cache).numpy()
    end(cache)
    return found


def draw(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_normal((count, HEADS + 2 * KV_HEADS, DEPTH)).astype("float32")


@pytest.mark.parametrize("rope_mode", list(RopeMode))
def test_sequences_that_grow_fork_and_shrink(rope_mode: RopeMode) -> None:
    vm, rng, reference = machine(rope_mode), np.random.default_rng(0), Reference(rope_mode)
    cache = vm["create"](ShapeTuple([4]), ShapeTuple([128]), ShapeTuple([32]), ShapeTuple([0]))
    add, fork, pop, remove = [
        call(f"vm.builtin.kv_state_{x}")
        for x in ("add_sequence", "fork_sequence", "popn", "remove_sequence")
    ]

    def step(lengths: dict[int, int]) -> None:
        qkv = draw(rng, sum(lengths.values()))
        parts = np.split(qkv, np.cumsum(list(lengths.values()))[:-1])
        wanted = [reference.append(s, x) for s, x in zip(lengths, parts, strict=True)]
        found = attend(vm, cache, lengths, qkv)
        np.testing.assert_allclose(found, np.concatenate(wanted, 1), rtol=1e-4, atol=1e-5)

    for sequence in (0, 1):
        add(cache, sequence)
        reference.sequences[sequence] = empty()
    step({0: 9, 1: 2})
    step({1: 1, 0: 1})
    step({0: 3})
    fork(cache, 0, 2, -1)
    fork(cache, 0, 3, 6)
    reference.sequences[2] = reference.sequences[0]
    reference.sequences[3] = tuple([x[:6] for x in reference.sequences[0]])  # type: ignore
    step({3: 1, 0: 1, 2: 1})
    pop(cache, 2, 5)
    reference.sequences[2] = tuple([x[:-5] for x in reference.sequences[2]])  # type: ignore
    step({2: 4, 1: 5})
    remove(cache, 0)
    step({3: 1, 2: 1, 1: 1})
    assert call("vm.builtin.attention_kv_cache_get_total_sequence_length")(cache) == sum(
        [len(reference.sequences[s][0]) for s in (1, 2, 3)]
    )
    for sequence in (1, 2, 3):
        keys, values = reference.sequences[sequence]
        found = [tvm.nd.empty((LAYERS, *keys.shape)) for _ in range(2)]
        call("vm.builtin.attention_kv_cache_debug_get_kv")(cache, sequence, 0, len(keys), *found)
        np.testing.assert_allclose(found[1].numpy()[1], values, rtol=1e-5)
        if rope_mode is not RopeMode.INLINE:
            np.testing.assert_allclose(found[0].numpy()[0], keys, rtol=1e-4, atol=1e-5)
        remove(cache, sequence)
    assert call("vm.builtin.attention_kv_cache_empty")(cache)


def test_a_sliding_window_sees_the_first_and_the_last_tokens() -> None:
    vm, rng, window, sink = machine(RopeMode.NONE), np.random.default_rng(1), 10, 3
    cache = vm["create"](ShapeTuple([1]), ShapeTuple([16]), ShapeTuple([16]), ShapeTuple([1]))
    call("vm.builtin.kv_state_add_sequence")(cache, 0)
    call("vm.builtin.attention_kv_cache_enable_sliding_window_for_seq")(cache, 0, window, sink)
    keys, values = empty()
    for length in [6] + [1] * 30:
        qkv = draw(rng, length)
        query, key, value = np.split(qkv, [HEADS, HEADS + KV_HEADS], 1)
        keys, values = np.concatenate([keys, key]), np.concatenate([values, value])
        at = np.arange(len(keys) - length, len(keys))[:, None]
        every = np.arange(len(keys))
        mask = (every <= at) & ((every < sink) | (every > at - (window - sink)))
        found = attend(vm, cache, {0: length}, qkv)
        wanted = attention(query, keys, values, mask)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_positions_and_pages() -> None:
    vm = machine(RopeMode.NORMAL)
    cache = vm["create"](ShapeTuple([2]), ShapeTuple([16]), ShapeTuple([8]), ShapeTuple([0]))
    pages = call("vm.builtin.attention_kv_cache_get_num_available_pages")
    begin = call("vm.builtin.kv_state_begin_forward")
    before = pages(cache)
    for sequence in (0, 1):
        call("vm.builtin.kv_state_add_sequence")(cache, sequence)
    for lengths, wanted in (((3, 5), [0, 1, 2, 0, 1, 2, 3, 4]), ((2, 1), [3, 4, 5])):
        begin(cache, ShapeTuple([0, 1]), ShapeTuple(list(lengths)))
        qkv = tvm.nd.array(draw(np.random.default_rng(0), sum(lengths))[None])
        np.testing.assert_array_equal(vm["positions"](qkv, cache).numpy(), wanted)
    assert before - pages(cache) == 4
    call("vm.builtin.kv_state_clear")(cache)
    assert pages(cache) == before


def test_what_a_cache_refuses() -> None:
    vm = machine(RopeMode.NORMAL)
    cache = vm["create"](ShapeTuple([1]), ShapeTuple([8]), ShapeTuple([20]), ShapeTuple([0]))
    add, begin = call("vm.builtin.kv_state_add_sequence"), call("vm.builtin.kv_state_begin_forward")
    add(cache, 5)
    for text, action in {
        "no forward pass has begun": lambda: vm["attend"](tvm.nd.empty((1, 1, 8, 16)), cache),
        "a sequence 5 already": lambda: add(cache, 5),
        "made for 1 sequences": lambda: add(cache, 6),
        "no sequence 7": lambda: begin(cache, ShapeTuple([7]), ShapeTuple([1])),
        "for 20 tokens a pass": lambda: begin(cache, ShapeTuple([5]), ShapeTuple([21])),
        "3 pages of 4 tokens left": lambda: begin(cache, ShapeTuple([5]), ShapeTuple([20])),
        "a tree of tokens": lambda: begin(
            cache, ShapeTuple([5]), ShapeTuple([3]), ShapeTuple([-1, 0, 0])
        ),
        "without sliding windows": lambda: call(
            "vm.builtin.attention_kv_cache_enable_sliding_window_for_seq"
        )(cache, 5, 4, 0),
        "expected a cache of": lambda: call("vm.builtin.attention_kv_cache_empty")(ShapeTuple([1])),
    }.items():
        with pytest.raises((ValueError, TypeError), match=text):
            action()
    with pytest.raises(tvm.error.OpNotImplemented, match="for processors"):
        kv_cache._attention_decode(2, 4, 16, "float32", False, {}, tvm.target.Target("cuda"))


@pytest.mark.parametrize("sizes", [(3, 5), (20, 1)])
def test_parts_of_attention_merge(sizes: tuple[int, int]) -> None:
    """Over all keys at once, and over two parts that are merged."""
    rng, total = np.random.default_rng(0), sum(sizes)
    target = tvm.target.Target("llvm")
    ragged = tvm.build(
        kv_cache._attention_prefill_ragged(KV_HEADS, HEADS, DEPTH, "float32", {}, target), target
    )
    merge = tvm.build(kv_cache._merge_state_inplace(HEADS, DEPTH, "float32", target), target)
    q = rng.standard_normal((2, HEADS, DEPTH)).astype("float32")
    k, v = rng.standard_normal((2, total, KV_HEADS, DEPTH)).astype("float32")

    def run(first: int, last: int) -> list[Any]:
        start, zeros = np.array([0, 2], "int32"), np.zeros(2, "int32")
        kv_start = np.array([0, last - first], "int32")
        out = [np.zeros_like(q), np.zeros((2, HEADS), "float32")]
        arrays = [q, start, k[first:last], v[first:last], kv_start, zeros, zeros[:1], *out]
        tensors = [tvm.nd.array(x) for x in arrays]
        ragged(*tensors, 0, 0, 1.0, 1e4, 1.0)
        return tensors[-2:]

    whole, parts = run(0, total), [run(0, sizes[0]), run(sizes[0], total)]
    merge(*parts[0], *parts[1])
    for found, wanted in zip(parts[0], whole, strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)


def test_rotary_embeddings_of_a_sequence() -> None:
    class Rope(nn.Module):
        def forward(self, x: nn.Tensor, total: Any) -> Any:
            return llama_rope(x, total, 1e4, 1.0, HEADS, KV_HEADS, {})

    mod, _ = Rope().export_tvm(
        {
            "forward": {
                "x": spec.Tensor([1, 3, HEADS + 2 * KV_HEADS, DEPTH], "float32"),
                "total": int,
            }
        }
    )
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    x = draw(np.random.default_rng(0), 3)
    found = [part.numpy()[0] for part in vm["forward"](tvm.nd.array(x[None]), ShapeTuple([7]))]
    q, k, v = np.split(x, [HEADS, HEADS + KV_HEADS], 1)
    at = np.arange(4, 7)
    for part, wanted in zip(found, (turned(q, at), turned(k, at), v), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rope_type", ["default", "llama3", "longrope"])
def test_angles(rope_type: str) -> None:
    scaling = {
        "rope_type": rope_type, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 64, "max_position_embeddings": 512,
    }  # fmt: skip
    frequencies = switch_rope_freq_func(scaling)
    out = tvm.te.compute(
        (8,), lambda d: _angle(frequencies(tvm.tir.const(5.0, "float32"), d, 8, 1e4, "float32"))
    )
    run = tvm.build(tvm.te.create_schedule(out.op), [out], "llvm")
    found = tvm.nd.empty((8,))
    run(found)
    base = 1e4 ** -(np.arange(8) * 2 % 8 / 8)
    factor = 1.0
    if rope_type == "llama3":
        smooth = np.clip((base * 64 / (2 * np.pi) - 1) / 3, 0, 1)
        base = base * ((1 - smooth) / 8 + smooth)
    if rope_type == "longrope":
        factor = np.sqrt(1 + np.log(8) / np.log(64))
    np.testing.assert_allclose(found.numpy(), factor * np.sin(5 * base), rtol=1e-4, atol=1e-5)


def _angle(found: Any) -> Any:
    value = found[1]
    for var, what in found[2].items():
        value = tvm.tir.Let(var, what, value)
    return value


def test_recurrent_states_go_back() -> None:
    def run(kind: str) -> Any:
        def function(storage: Any, slots: Any, places: Any, data: Any) -> None:
            held = storage.numpy()
            for i, (slot, place) in enumerate(zip(slots.numpy(), places.numpy(), strict=True)):
                if kind == "set":
                    held[slot, (place + 1) % 3] = data.numpy()[i]
                else:
                    data.copyfrom(np.concatenate([held[s, p][None] for s, p in [(slot, place)]]))
            if kind == "set":
                storage.copyfrom(held)

        return tvm.runtime.convert(function)

    state = call("vm.builtin.rnn_state_create")(
        1, 2, 3, [run("get")], [run("set")], [tvm.nd.array(np.zeros(2, "float32"))]
    )
    kv = {
        name: call(f"vm.builtin.kv_state_{name}")
        for name in ("add_sequence", "begin_forward", "end_forward", "popn", "fork_sequence")
    }
    debug = call("vm.builtin.rnn_state_debug_get")
    kv["add_sequence"](state, 0)
    for value in (1, 2, 3):
        kv["begin_forward"](state, ShapeTuple([0]), ShapeTuple([1]))
        data = tvm.nd.array(np.full((1, 2), value, "float32"))
        call("vm.builtin.rnn_state_set")(state, 0, 0, data)
        kv["end_forward"](state)
    kv["fork_sequence"](state, 0, 1, -1)
    kv["popn"](state, 1, 2)
    np.testing.assert_array_equal(debug(state, 0, 0, 0).numpy(), [3, 3])
    np.testing.assert_array_equal(debug(state, 0, 0, 1).numpy(), [1, 1])
    with pytest.raises(ValueError, match="0 states to go back to"):
        kv["popn"](state, 1, 1)
    kv["begin_forward"](state, ShapeTuple([1]), ShapeTuple([1]))
    out = tvm.nd.empty((1, 2))
    call("vm.builtin.rnn_state_get")(state, 0, 0, out)
    np.testing.assert_array_equal(out.numpy(), [[1, 1]])
