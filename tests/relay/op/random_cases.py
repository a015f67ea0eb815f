"""Cases of the random numbers, against Threefry in numpy's integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import relay

from .cases import Array, Case

_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_MASK = (1 << 64) - 1


def key(seed: int = 0, **words: int) -> Array:
    found = relay.random.threefry_key(seed).data.numpy().copy()
    for name, value in words.items():
        found[int(name[1:])] = value
    return found


def threefry(words: list[int], block: list[int]) -> list[int]:
    """One block, in Python's integers."""
    parity = 0x1BD11BDAA9FC1A22
    for word in words:
        parity ^= word
    schedule = [*words, parity]
    x = list(block)
    for step in range(6):
        x = [(v + schedule[(step + i) % 5]) & _MASK for i, v in enumerate(x)]
        x[3] = (x[3] + step) & _MASK
        if step == 5:
            return x
        for r in range(4):
            for pair, bits in enumerate(_ROTATIONS[(4 * step + r) % 8]):
                a, b = x[2 * pair], x[2 * pair + 1]
                a = (a + b) & _MASK
                x[2 * pair : 2 * pair + 2] = [a, (((b << bits) | (b >> (64 - bits))) & _MASK) ^ a]
            x = [x[0], x[3], x[2], x[1]]
    raise AssertionError


def _shifted(high: int, low: int) -> list[int]:
    both = ((high << 64) | low) >> 1
    return [both >> 64, both & _MASK]


def generate(state: Array, shape: tuple[int, ...]) -> list[Array]:
    s = [int(v) for v in state]
    count = int(np.prod(shape))
    if s[7] >= _MASK - count:
        if s[8] == s[9] == 0:
            s = [*threefry(s[:4], [_MASK] * 4), 0, 0, 0, 0, 1 << 63, 0]
        else:
            s = [*s[:6], 0, 0, *_shifted(s[8], s[9])]
    words: list[int] = []
    while len(words) < count:
        words += threefry(s[:4], s[4:8])
        s[7] += 4
    return [np.array(s, "uint64"), np.array(words[:count], "uint64").reshape(shape)]


def split(state: Array) -> list[Array]:
    s = [int(v) for v in state]
    if s[8] == s[9] == 0:
        hashed = threefry(s[:4], s[4:8])
        sides = [[*hashed, path, 0, 0, 0, 1 << 62, 0] for path in (0, 1 << 63)]
    else:
        bit = _shifted(s[8], s[9])
        sides = [[*s[:8], *bit], [*s[:4], s[4] | s[8], s[5] | s[9], *s[6:8], *bit]]
    return [np.array(side, "uint64") for side in sides]


def uniform(state: Array, shape: tuple[int, ...], low: float, high: float, dtype: str) -> list[Any]:
    state, words = generate(state, shape)
    if dtype == "float32":
        bits = (words.astype("uint32") >> 9) | np.uint32(0x3F800000)
    else:
        bits = (words >> np.uint64(12)) | np.uint64(0x3FF0000000000000)
    unit = bits.view(dtype) - np.array(1, dtype)
    return [state, unit * np.array(high - low, dtype) + np.array(low, dtype)]


def normal(
    state: Array, shape: tuple[int, ...], mean: float, scale: float, dtype: str = "float32"
) -> list[Any]:
    state, pairs = uniform(state, (*shape, 2), 0.0, 1.0, dtype)
    radius = np.sqrt(-2 * np.log(1 - pairs[..., 0]))
    return [state, radius * np.sin(pairs.dtype.type(2 * np.pi) * pairs[..., 1]) * scale + mean]


def multinomial(state: Array, probs: Array, count: int) -> list[Any]:
    state, places = uniform(state, (*probs.shape[:-1], count), 0.0, 1.0, "float32")
    sums = np.maximum(probs, 0).cumsum(-1)
    hits = (places * sums[..., -1:])[..., None] < sums[..., None, :]
    return [state, hits.argmax(-1).astype("int32")]


def random_cases() -> list[Case]:
    lib = relay.random
    full = key(3, w8=0, w9=0)
    spent = key(5, w7=_MASK - 3)
    probs = np.array([[0.2, -1.0, 0.5, 0.3], [3.0, 0.0, 1.0, 0.0]], "float32")
    table: list[tuple[str, Any, tuple[Array, ...], Any]] = [
        ("random.threefry_generate", lambda k: lib.threefry_generate(k, (4,)).astuple(), (key(),), lambda k: generate(k, (4,))),
        ("random.threefry_generate", lambda k: lib.threefry_generate(k, (3, 7)).astuple(), (key(2**200 + 9, w4=7),), lambda k: generate(k, (3, 7))),
        ("random.threefry_generate", lambda k: lib.threefry_generate(k, (5000,)).astuple(), (key(1),), lambda k: generate(k, (5000,))),
        ("random.threefry_generate", lambda k: lib.threefry_generate(k, (8,)).astuple(), (spent,), lambda k: generate(k, (8,))),
        ("random.threefry_generate", lambda k: lib.threefry_generate(k, (8,)).astuple(), (key(5, w7=_MASK - 3, w8=1),), lambda k: generate(k, (8,))),
        ("random.threefry_generate", lambda k: lib.threefry_generate(k, (8,)).astuple(), (key(5, w7=_MASK - 3, w8=0),), lambda k: generate(k, (8,))),
        ("random.threefry_generate", lambda k: lib.threefry_generate(k, (0,)).astuple(), (key(),), lambda k: generate(k, (0,))),
        ("random.threefry_split", lambda k: lib.threefry_split(k).astuple(), (key(4, w4=12),), split),
        ("random.threefry_split", lambda k: lib.threefry_split(k).astuple(), (full,), split),
        ("random.threefry_split", lambda k: lib.threefry_split(k).astuple(), (key(4, w8=1),), split),
        ("random.uniform", lambda k: lib.uniform(k, (5, 9)).astuple(), (key(8),), lambda k: uniform(k, (5, 9), 0.0, 1.0, "float32")),
        ("random.uniform", lambda k: lib.uniform(k, (7,), "float64", -2.0, 3.0).astuple(), (key(8),), lambda k: uniform(k, (7,), -2.0, 3.0, "float64")),
        ("random.normal", lambda k: lib.normal(k, (6, 5), "float32", 2.0, 0.5).astuple(), (key(9),), lambda k: normal(k, (6, 5), 2.0, 0.5)),
        ("random.multinomial", lambda k, p: lib.multinomial(k, p, 11).astuple(), (key(10), probs), lambda k, p: multinomial(k, p, 11)),
        ("random.multinomial", lambda k, p: lib.multinomial(k, p, 20).astuple(), (key(11), probs[0]), lambda k, p: multinomial(k, p, 20)),
    ]  # fmt: skip
    return [Case(name, build, inputs, expected) for name, build, inputs, expected in table]
