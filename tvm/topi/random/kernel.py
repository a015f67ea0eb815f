"""Threefry-4x64 with 20 rounds, a generator that counts and that can be split.

Its state is ten words of 64 bits: a key (0 to 3), the block that is enciphered, which is a path of
splits (4, 5) and a counter (6, 7), and the bit of the path that the next split sets (8, 9). A path
that is full is hashed into a new key. Only word 7 counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import numpy as np

from tvm import driver, te, tir
from tvm.error import RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.runtime import Device
from tvm.runtime import ndarray as nd
from tvm.support.docstrings import described_by
from tvm.tir.ir_builder import BufferVar, IRBuilder

from .. import tag
from ..scan import cumsum
from ..searchsorted import searchsorted
from ..utils import cast_scalar, ceil_div, dims, get_const_tuple, prod

_ROUNDS = 20
_WORDS = 4
_PARITY = 0x1BD11BDAA9FC1A22
_ROTATIONS = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
_ORDER = (0, 3, 2, 1)
_ALL_ONES = (1 << 64) - 1

Words = Sequence[PrimExpr]


def _u64(value: int) -> PrimExpr:
    return tir.const(value, "uint64")


def _enciphered(ib: IRBuilder, key: Words, block: Words) -> list[PrimExpr]:
    """One block of four words."""
    parity = _u64(_PARITY)
    for word in key:
        parity = parity ^ word
    schedule = [*key, ib.let("parity", parity)]

    def inject(words: Words, step: int) -> list[PrimExpr]:
        found = [w + schedule[(step + i) % (_WORDS + 1)] for i, w in enumerate(words)]
        found[-1] = found[-1] + _u64(step)
        return [ib.let("x", w) for w in found]

    words = list(block)
    for r in range(_ROUNDS):
        if r % 4 == 0:
            words = inject(words, r // 4)
        mixed: list[PrimExpr] = []
        for pair, bits in enumerate(_ROTATIONS[r % len(_ROTATIONS)]):
            a, b = words[2 * pair], words[2 * pair + 1]
            total = ib.let("x", a + b)
            turned = (b << _u64(bits)) | (b >> _u64(64 - bits))
            mixed += [total, ib.let("x", turned ^ total)]
        words = [mixed[i] for i in _ORDER]
    return inject(words, _ROUNDS // 4)


def _next_bit(high: PrimExpr, low: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """A single bit of 128, moved one position to the right."""
    carried = tir.Select(tir.EQ(high, _u64(1)), _u64(1 << 63), low >> _u64(1))
    return high >> _u64(1), tir.Select(high > _u64(1), _u64(0), carried)


def threefry_generate(gen: te.Tensor, out_shape: Sequence[Any]) -> list[te.Tensor]:
    """Random words of 64 bits.

    Parameters
    ----------
    gen : te.Tensor
        The generator's state, ten words of uint64.
    out_shape : sequence of int
        How many words.

    Returns
    -------
    list of te.Tensor
        The generator's next state, and the words (uint64).
    """
    shape = get_const_tuple(out_shape)
    count = prod(shape)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        old, new = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        # out has the shape wanted, one axis of blocks suits the loop
        out = ib.buffer_ptr(tir.decl_buffer([count], "uint64", "words", data=outs[1].data))
        blocks = ceil_div(count, _WORDS)
        _renew(ib, old, new, count)
        start = ib.allocate("uint64", 1, "start", scope="local")
        start[0] = new[7]
        is_long = isinstance(blocks, int) and blocks > 1024
        with ib.for_range(0, blocks, "i", kind="parallel" if is_long else "serial") as i:
            first = i * _WORDS
            block = [new[4], new[5], new[6], start[0] + first.astype("uint64")]
            for j, word in enumerate(_enciphered(ib, [new[k] for k in range(4)], block)):
                if isinstance(count, int) and count % _WORDS == 0:
                    out[first + j] = word
                else:
                    with ib.if_scope(first + j < count):
                        out[first + j] = word
        new[7] = start[0] + cast_scalar(blocks * _WORDS, "uint64")
        return ib.get()

    return list(
        te.extern(
            [gen.shape, shape], [gen], body, dtype=["uint64", "uint64"],
            name="threefry_generate", tag="threefry_generate",
        )
    )  # fmt: skip


def _renew(ib: IRBuilder, old: BufferVar, new: BufferVar, count: Any) -> None:
    """The state to generate from: as it is, or, without room to count, a longer path or a new key."""
    for i in range(10):
        new[i] = old[i]
    with ib.if_scope(old[7] >= _u64(_ALL_ONES) - cast_scalar(count, "uint64")):
        with ib.if_scope(tir.all(tir.EQ(old[8], _u64(0)), tir.EQ(old[9], _u64(0)))):
            key = [old[i] for i in range(4)]
            for i, word in enumerate(_enciphered(ib, key, [_u64(_ALL_ONES)] * 4)):
                new[i] = word
            for i, value in enumerate((0, 0, 0, 0, 1 << 63, 0)):
                new[4 + i] = _u64(value)
        with ib.else_scope():
            new[6] = _u64(0)
            new[7] = _u64(0)
            high, low = _next_bit(old[8], old[9])
            new[8] = high
            new[9] = low


def threefry_split(gen: te.Tensor) -> list[te.Tensor]:
    """Two generators that are independent of each other, and of the one they come from.

    Parameters
    ----------
    gen : te.Tensor
        The generator's state, ten words of uint64.
    """

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        old, left, right = [ib.buffer_ptr(x) for x in (*ins, *outs)]
        with ib.if_scope(tir.all(tir.EQ(old[8], _u64(0)), tir.EQ(old[9], _u64(0)))):
            key = [old[i] for i in range(4)]
            hashed = _enciphered(ib, key, [old[i] for i in range(4, 8)])
            for side, path in ((left, 0), (right, 1 << 63)):
                for i, word in enumerate(hashed):
                    side[i] = word
                for i, value in enumerate((path, 0, 0, 0, 1 << 62, 0)):
                    side[4 + i] = _u64(value)
        with ib.else_scope():
            for side in (left, right):
                for i in range(8):
                    side[i] = old[i]
                high, low = _next_bit(old[8], old[9])
                side[8] = high
                side[9] = low
            right[4] = old[4] | old[8]
            right[5] = old[5] | old[9]
        return ib.get()

    return list(
        te.extern(
            [gen.shape, gen.shape], [gen], body, dtype=["uint64", "uint64"],
            name="threefry_split", tag="threefry_split",
        )
    )  # fmt: skip


def threefry_test_wrapping(target: Any, device: Device) -> bool:
    """Whether unsigned integers wrap around on a target, as Threefry needs.

    Parameters
    ----------
    target : Target or str
    device : Device
        A device of that target.
    """

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> tir.Stmt:
        ib = tir.ir_builder.create()
        source, out = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        out[0] = source[0] + _u64(1)
        return ib.get()

    source = te.placeholder((1,), "uint64", name="source")
    total = te.extern([(1,)], [source], body, dtype="uint64")
    kernel = driver.build(te.create_schedule(total.op), [source, total], target=target)
    found = nd.array(np.zeros(1, "uint64"), device)
    kernel(nd.array(np.array([_ALL_ONES], "uint64"), device), found)
    return bool(found.numpy()[0] == 0)


_FRACTIONS = {"float32": ("uint32", 32, 23), "float64": ("uint64", 64, 52)}


def uniform(
    gen: te.Tensor, low: Any, high: Any, out_shape: Sequence[Any], out_dtype: str
) -> list[te.Tensor]:
    """Numbers that are equally likely anywhere between two bounds.

    Parameters
    ----------
    gen : te.Tensor
        The generator's state, ten words of uint64.
    low, high : float or te.Tensor
        The least number, and one above all.
    out_shape : sequence of int
        How many.
    out_dtype : str
        "float32" or "float64".

    Returns
    -------
    list of te.Tensor
        The generator's next state, and the numbers.
    """
    if out_dtype not in _FRACTIONS:
        raise RuntimeValueError(f"random numbers are float32 or float64, not {out_dtype!r}")
    state, words = threefry_generate(gen, out_shape)
    kind, bits, fraction = _FRACTIONS[out_dtype]
    one = ((1 << (bits - fraction - 2)) - 1) << fraction  # the bits of 1.0

    def element(*i: Any) -> PrimExpr:
        mantissa = words(*i).astype(kind) >> tir.const(bits - fraction, kind)
        unit = tir.reinterpret(out_dtype, mantissa | tir.const(one, kind)) - tir.const(1, out_dtype)
        least, most = _scalar(low, out_dtype), _scalar(high, out_dtype)
        return unit * (most - least) + least

    return [state, _elementwise(words.shape, element, "uniform")]


@described_by(uniform)
def normal(
    gen: te.Tensor, mean: Any, scale: Any, out_shape: Sequence[Any], out_dtype: str
) -> list[te.Tensor]:
    """Numbers of the normal distribution, by Box and Muller's transformation.

    Parameters
    ----------
    mean, scale : float or te.Tensor
        The mean and the standard deviation.

    Returns
    -------
    list of te.Tensor
        The generator's next state, and the numbers.
    """
    state, pairs = uniform(gen, 0.0, 1.0, [*out_shape, 2], out_dtype)

    def element(*i: Any) -> PrimExpr:
        # 1 - u is never 0
        radius = tir.sqrt(tir.log(1.0 - pairs(*i, 0)) * tir.const(-2.0, out_dtype))
        angle = pairs(*i, 1) * tir.const(2.0 * pi, out_dtype)
        value = radius * tir.sin(angle)
        return value * _scalar(scale, out_dtype) + _scalar(mean, out_dtype)

    return [state, _elementwise(get_const_tuple(out_shape), element, "normal")]


def multinomial(gen: te.Tensor, probs: te.Tensor, num_samples: int) -> list[te.Tensor]:
    """Indices, each as likely as its probability says.

    Parameters
    ----------
    gen : te.Tensor
        The generator's state, ten words of uint64.
    probs : te.Tensor
        Probabilities along the last axis; negative ones count as 0, and they need not sum up to 1.
    num_samples : int
        How many indices for each row.

    Returns
    -------
    list of te.Tensor
        The generator's next state, and the indices (int32).
    """
    shape = dims(probs.shape)
    positive = te.compute(
        shape, lambda *i: tir.max(probs(*i).astype("float32"), 0.0), "positive", tag=tag.ELEMWISE
    )
    sums = cumsum(positive, len(shape) - 1)
    state, positions = uniform(gen, 0.0, 1.0, [*shape[:-1], num_samples], "float32")
    scaled = te.compute(
        positions.shape, lambda *i: positions(*i) * sums(*i[:-1], shape[-1] - 1), "scaled",
        tag=tag.BROADCAST,
    )  # fmt: skip
    found = searchsorted(sums, scaled, True, "int32")
    # a sum that is rounded may fall short of the number drawn
    indices = _elementwise(
        found.shape, lambda *i: tir.min(found(*i), cast_scalar(shape[-1] - 1, "int32")), "indices"
    )
    return [state, indices]


def _scalar(value: Any, dtype: str) -> PrimExpr:
    if isinstance(value, te.Tensor):
        value = value(*[0] * len(value.shape))
    return cast_scalar(value, dtype)


def _elementwise(shape: Sequence[Any], element: Callable[..., PrimExpr], name: str) -> te.Tensor:
    return te.compute(shape, element, name=name, tag=tag.ELEMWISE)
