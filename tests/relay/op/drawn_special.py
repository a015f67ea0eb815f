"""Drawn calls of random numbers, linear algebra, sparse matrices and the operators of special networks."""

from __future__ import annotations

import numpy as np

from tvm import relay

from . import random_cases, special_cases, vision_cases
from .drawing import Array, Draw, Drawn
from .sparse_cases import blocks


def random_numbers(d: Draw) -> Drawn:
    """Of any seed, from any place of the sequence on."""
    key = random_cases.key(d.number(0, 2**256 - 1), w7=4 * d.number(0, 2**20))
    shape, dtype = d.shape(1, 3, 1, 5), d.pick("float32", "float64")
    low, span = float(d.number(-3, 3)), float(d.number(1, 4))
    lib = relay.random
    kind = d.pick("generate", "uniform", "normal", "multinomial")
    if kind == "generate":
        return lambda k: lib.threefry_generate(k, shape).astuple(), [key], random_cases.generate(key, shape)  # fmt: skip
    if kind == "uniform":
        expected = random_cases.uniform(key, shape, low, low + span, dtype)
        return lambda k: lib.uniform(k, shape, dtype, low, low + span).astuple(), [key], expected
    if kind == "normal":
        state, values = random_cases.normal(key, shape, low, span, dtype)
        expected = [state, values.astype(dtype)]
        return lambda k: lib.normal(k, shape, dtype, low, span).astuple(), [key], expected
    count = d.number(1, 7)
    chances = d.array((*d.shape(0, 1, 1, 3), d.number(1, 5)), low=0, high=3)
    chances[..., 0] += 1
    expected = random_cases.multinomial(key, chances, count)
    return lambda k, p: lib.multinomial(k, p, count).astuple(), [key, chances], expected


def triangles(d: Draw) -> Drawn:
    """Systems of triangular matrices, and Cholesky's factors."""
    n, lead = d.number(1, 5), d.shape(0, 2, 1, 3)
    dtype = d.pick("float32", "float64")
    matrix = d.array((*lead, n, n), dtype, -1, 1) + n * np.eye(n, dtype=dtype)
    if d.flag():
        positive = matrix @ matrix.swapaxes(-1, -2)
        found = np.linalg.cholesky(positive)
        return lambda a: relay.op.linalg.cholesky(a)[0], [positive], found
    upper, unit = d.flag(), d.flag()
    values = d.array((*lead, n, d.number(1, 4)), dtype)
    half = (np.triu if upper else np.tril)(matrix, 0)
    if unit:
        half = half - half * np.eye(n, dtype=dtype) + np.eye(n, dtype=dtype)
    return (
        lambda a, b: relay.op.linalg.solve_triangular(a, b, upper, unit),
        [matrix, values], np.linalg.solve(half, values),
    )  # fmt: skip


def _sparse(d: Draw, rows: int, columns: int, height: int = 1, width: int = 1) -> Array:
    """A matrix of which some blocks are zeros, the first one aside."""
    kept = d.rng().random((rows // height, columns // width)) < 0.4
    kept[0, 0] = True
    values = d.array((rows, columns), low=1, high=4)
    return values * np.kron(kept, np.ones((height, width))).astype("float32")


def sparse_products(d: Draw) -> Drawn:
    height, width = d.pick((1, 1), (2, 1), (4, 2), (3, 3))
    rows, columns = height * d.number(1, 6), width * d.number(1, 6)
    matrix = _sparse(d, rows, columns, height, width)
    parts = blocks(matrix, height, width)
    data = d.array((d.number(1, 5), columns))
    if d.flag() and (height, width) != (1, 1):
        return lambda a, *m: relay.nn.sparse_dense(a, m, True), [data, *parts], matrix @ data.T
    return lambda a, *m: relay.nn.sparse_dense(a, m), [data, *parts], data @ matrix.T


def sparse_sums(d: Draw) -> Drawn:
    if d.flag():
        matrix = _sparse(d, d.number(1, 6), d.number(1, 6))
        data = d.array(matrix.shape)
        return lambda a, *m: relay.nn.sparse_add(a, m), [data, *blocks(matrix)], data + matrix
    extent = d.number(1, 6)
    square = _sparse(d, extent, extent)
    return (
        lambda *m: relay.nn.sparse_transpose(m).astuple(), list(blocks(square)),
        list(blocks(np.ascontiguousarray(square.T))),
    )  # fmt: skip


def proposals(d: Draw) -> Drawn:
    height, width, batch = d.number(1, 5), d.number(1, 5), d.number(1, 2)
    scales, ratios = tuple(d.some((8.0, 4.0, 2.0), 1)), tuple(d.some((0.5, 1.0, 2.0), 1))
    count, stride = len(scales) * len(ratios), d.pick(8, 16)
    order = d.rng().permutation(batch * 2 * count * height * width)
    scores = (order / order.size).astype("float32").reshape(batch, 2 * count, height, width)
    moves = d.array((batch, 4 * count, height, width), low=-0.3, high=0.3)
    sides = [[stride * height - d.number(0, 4), stride * width - d.number(0, 4), d.pick(1.0, 1.5)] for _ in range(batch)]  # fmt: skip
    options = (scales, ratios, stride, d.pick(0.5, 0.75), d.number(1, 40), d.number(1, 8), d.number(1, 8), d.flag())  # fmt: skip
    image = np.array(sides, "float32")
    return (
        lambda *a: relay.vision.proposal(*a, *options), [scores, moves, image],
        vision_cases._proposal(scores, moves, image, *options),
    )  # fmt: skip


def deformed(d: Draw) -> Drawn:
    """Deformable convolutions whose places are moved by less than two pixels."""
    groups, own = d.pick(1, 2), d.pick(1, 2)
    stride, pad = d.number(1, 2), d.number(0, 1)
    data = d.array((d.number(1, 2), 4, d.number(3, 6), d.number(3, 6)))
    rows, columns = [(n + 2 * pad - 3) // stride + 1 for n in data.shape[2:]]
    offset = d.array((data.shape[0], 18 * own, rows, columns), low=-2, high=2)
    weight = d.array((2 * groups, 4 // groups, 3, 3))
    options = {"strides": stride, "padding": pad, "groups": groups, "deformable_groups": own}
    return (
        lambda x, o, w: relay.nn.deformable_conv2d(x, o, w, **options), [data, offset, weight],
        special_cases._deformed(data, offset, weight, stride, pad, groups, own),
    )  # fmt: skip


def correlations(d: Draw) -> Drawn:
    kernel, reach = d.pick(1, 3), d.number(1, 2)
    options = (kernel, reach, d.number(1, 2), d.number(1, 2), d.number(2, 3), d.flag())
    shape = (d.number(1, 2), d.number(1, 3), d.number(5, 8), d.number(5, 8))
    a, b = d.array(shape), d.array(shape)
    return (
        lambda x, y: relay.nn.correlation(x, y, *options, "NCHW"), [a, b],
        special_cases._correlated(a, b, *options),
    )  # fmt: skip


def products_of_few_bits(d: Draw) -> Drawn:
    bits, unipolar = (d.number(1, 3), d.number(1, 2)), d.flag()
    depth = 8 * d.number(1, 3)
    data = d.rng().integers(0, 1 << bits[0], (d.number(1, 4), depth)).astype("uint8")
    weight = d.rng().integers(0, 1 << bits[1], (d.number(1, 4), depth)).astype("uint8")
    meaning = special_cases._meaning(weight, bits[1], unipolar)
    return (
        lambda x, w: relay.nn.bitserial_dense(x, w, None, *bits, "uint8", "int32", unipolar),
        [data, weight], (data.astype("int64") @ meaning.T).astype("int32"),
    )  # fmt: skip


SPECIAL = [
    random_numbers,
    triangles,
    sparse_products,
    sparse_sums,
    proposals,
    deformed,
    correlations,
    products_of_few_bits,
]
