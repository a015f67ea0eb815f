"""One row a call: an operator, its inputs, and what numpy says of the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm import relay

Array = np.ndarray
RNG = np.random.default_rng(7)


@dataclass(frozen=True)
class Case:
    """A call of one operator."""

    name: str  # the operator that the case is about
    build: Callable[..., Any]
    inputs: tuple[Array, ...]
    expected: Callable[..., Any]
    tolerance: float = 1e-5

    def __str__(self) -> str:
        shapes = "x".join(["_".join(map(str, a.shape)) or "scalar" for a in self.inputs])
        return f"{self.name}-{shapes}"


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> Array:
    return RNG.uniform(low, high, shape).astype("float32")


def ints(*shape: int, low: int = -5, high: int = 6, dtype: str = "int32") -> Array:
    return RNG.integers(low, high, shape).astype(dtype)


def bools(*shape: int) -> Array:
    return RNG.integers(0, 2, shape).astype(bool)


_erf = np.vectorize(math.erf, otypes=["float32"])

_UNARY: list[tuple[str, Callable[[Array], Array], float, float]] = [
    ("log", np.log, 0.1, 4), ("log2", np.log2, 0.1, 4), ("log10", np.log10, 0.1, 4),
    ("exp", np.exp, -3, 3), ("sqrt", np.sqrt, 0, 4), ("rsqrt", lambda x: 1 / np.sqrt(x), 0.1, 4),
    ("sigmoid", lambda x: 1 / (1 + np.exp(-x)), -6, 6), ("tanh", np.tanh, -4, 4),
    ("erf", _erf, -3, 3), ("sin", np.sin, -6, 6), ("cos", np.cos, -6, 6), ("tan", np.tan, -1, 1),
    ("sinh", np.sinh, -2, 2), ("cosh", np.cosh, -2, 2), ("asin", np.arcsin, -0.9, 0.9),
    ("acos", np.arccos, -0.9, 0.9), ("atan", np.arctan, -3, 3), ("asinh", np.arcsinh, -3, 3),
    ("acosh", np.arccosh, 1.1, 4), ("atanh", np.arctanh, -0.9, 0.9), ("floor", np.floor, -4, 4),
    ("ceil", np.ceil, -4, 4), ("trunc", np.trunc, -4, 4), ("round", np.rint, -4, 4),
    ("sign", np.sign, -1, 1), ("abs", np.abs, -1, 1), ("negative", np.negative, -1, 1),
    ("copy", np.copy, -1, 1), ("zeros_like", np.zeros_like, -1, 1),
    ("ones_like", np.ones_like, -1, 1), ("isnan", np.isnan, -1, 1),
    ("isfinite", np.isfinite, -1, 1), ("isinf", np.isinf, -1, 1),
]  # fmt: skip


def unary_cases() -> list[Case]:
    cases = []
    for name, function, low, high in _UNARY:
        op = getattr(relay, name)
        for shape in ((3, 32), (5, 7), ()):
            data = floats(*shape, low=low, high=high)
            cases.append(Case(name, op, (data,), function, 1e-5))
    special = np.array([[np.nan, np.inf, -np.inf, 0.0, 1.0]], dtype="float32")
    for name in ("isnan", "isfinite", "isinf"):
        cases.append(Case(name, getattr(relay, name), (special,), getattr(np, name)))
    halves = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49], dtype="float32")
    cases.append(Case("round", relay.round, (halves,), np.rint))
    cases.append(Case("logical_not", relay.logical_not, (bools(4, 5),), np.logical_not))
    cases.append(Case("bitwise_not", relay.bitwise_not, (ints(4, 5),), np.bitwise_not))
    cases.append(Case("abs", relay.abs, (ints(3, 16),), np.abs))
    cases.append(
        Case(
            "clip", lambda x: relay.clip(x, -0.5, 1.0), (floats(5, 16),), lambda x: x.clip(-0.5, 1)
        )
    )
    cases.append(Case("clip", lambda x: relay.clip(x, -2, 3), (ints(7),), lambda x: x.clip(-2, 3)))
    for dtype in ("int32", "float64", "bool", "int8"):
        cases.append(
            Case(
                "cast",
                lambda x, d=dtype: relay.cast(x, d),
                (floats(4, 9),),
                lambda x, d=dtype: x.astype(d),
            )
        )
    cases.append(
        Case(
            "cast_like", relay.cast_like, (ints(4, 3), floats(2)), lambda x, y: x.astype("float32")
        )
    )
    cases.append(
        Case(
            "reinterpret",
            lambda x: relay.reinterpret(x, "int32"),
            (floats(9),),
            lambda x: x.view("int32"),
        )
    )
    return cases


_BINARY: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
    ("maximum", np.maximum), ("minimum", np.minimum), ("floor_mod", np.mod), ("mod", np.fmod),
    ("floor_divide", lambda a, b: np.floor(a / b)), ("trunc_divide", lambda a, b: np.trunc(a / b)),
    ("trunc_mod", np.fmod), ("equal", np.equal), ("not_equal", np.not_equal), ("less", np.less),
    ("less_equal", np.less_equal), ("greater", np.greater), ("greater_equal", np.greater_equal),
]  # fmt: skip
_INTEGER_BINARY: list[tuple[str, Callable[[Array, Array], Array]]] = [
    ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply),
    ("divide", lambda a, b: np.trunc(a / b).astype(a.dtype)), ("floor_divide", np.floor_divide),
    ("floor_mod", np.mod), ("mod", np.fmod), ("bitwise_and", np.bitwise_and),
    ("trunc_divide", lambda a, b: np.trunc(a / b).astype(a.dtype)), ("trunc_mod", np.fmod),
    ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor), ("maximum", np.maximum),
    ("equal", np.equal), ("less", np.less),
]  # fmt: skip
_SHAPES: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((4, 16), (4, 16)), ((2, 3, 5), (3, 1)), ((1, 6), (5, 1)), ((), (3,)), ((4, 1, 8), (1, 5, 1)),
]  # fmt: skip


def binary_cases() -> list[Case]:
    cases = []
    for name, function in _BINARY:
        op = getattr(relay, name)
        for a, b in _SHAPES[:3]:
            cases.append(Case(name, op, (floats(*a), floats(*b, low=0.5, high=3)), function, 1e-4))
    for name, function in _INTEGER_BINARY:
        op = getattr(relay, name)
        for dtype in ("int32", "int64"):
            pair = (ints(3, 7, dtype=dtype), ints(7, low=1, dtype=dtype))
            cases.append(Case(name, op, pair, function))
    for a, b in _SHAPES:
        cases.append(Case("add", relay.add, (floats(*a), floats(*b)), np.add))
    cases.append(Case("power", relay.power, (floats(4, 16, low=0.1), floats(16)), np.power, 1e-4))
    for name in ("left_shift", "right_shift"):
        pair = (ints(4, 5, low=0, high=99), ints(5, low=0, high=4))
        cases.append(Case(name, getattr(relay, name), pair, getattr(np, name)))
    for name in ("logical_and", "logical_or", "logical_xor"):
        cases.append(Case(name, getattr(relay, name), (bools(4, 5), bools(5)), getattr(np, name)))
    return cases


_REDUCE: list[tuple[str, Callable[..., Array]]] = [
    ("sum", np.sum), ("max", np.max), ("min", np.min), ("mean", np.mean), ("prod", np.prod),
]  # fmt: skip


def reduce_cases() -> list[Case]:
    cases = []
    axes: list[tuple[tuple[int, ...], Any, bool]] = [
        ((4, 128), -1, False), ((4, 128), 0, False), ((3, 5, 7), (0, 2), True),
        ((2, 3, 4, 5), (2, 3), False), ((33, 65), None, False), ((6, 64), 1, True), ((9,), 0, False),
    ]  # fmt: skip
    for name, function in _REDUCE:
        op = getattr(relay, name)
        for shape, axis, keepdims in axes:
            data = floats(*shape, low=0.9, high=1.1)
            cases.append(
                Case(
                    name,
                    lambda x, op=op, a=axis, k=keepdims: op(x, a, k),
                    (data,),
                    lambda x, f=function, a=axis, k=keepdims: f(x, axis=a, keepdims=k),
                    1e-4,
                )
            )
    cases.append(
        Case(
            "sum",
            lambda x: relay.sum(x, 1, exclude=True),
            (floats(3, 4, 5),),
            lambda x: x.sum((0, 2)),
            1e-4,
        )
    )
    cases.append(
        Case("sum", lambda x: relay.sum(x, 1), (ints(3, 40),), lambda x: x.sum(1).astype(x.dtype))
    )
    for name in ("all", "any"):
        cases.append(
            Case(
                name,
                lambda x, n=name: getattr(relay, n)(x, 1),
                (bools(4, 6),),
                lambda x, n=name: getattr(np, n)(x, axis=1),
            )
        )
    return cases + arg_reduce_cases() + composed_reduce_cases()


def arg_reduce_cases() -> list[Case]:
    cases = []
    for name in ("argmax", "argmin"):
        for shape, axis, _ in [((4, 128), -1, False), ((4, 128), 0, False)]:
            cases.append(
                Case(
                    name,
                    lambda x, n=name, a=axis: getattr(relay, n)(x, a),
                    (floats(*shape),),
                    lambda x, n=name, a=axis: getattr(np, n)(x, axis=a).astype("int32"),
                )
            )
    ties = np.array([[1, 3, 3, 0], [2, 2, 2, 2]], dtype="float32")
    cases.append(
        Case("argmax", lambda x: relay.argmax(x, 1), (ties,), lambda x: np.array([1, 0], "int32"))
    )
    cases.append(
        Case(
            "argmax",
            lambda x: relay.argmax(x, 1, select_last_index=True),
            (ties,),
            lambda x: np.array([2, 3], "int32"),
        )
    )
    return cases


def composed_reduce_cases() -> list[Case]:
    cases = []
    cases.append(
        Case("variance", lambda x: relay.variance(x, 1), (floats(5, 32),), lambda x: x.var(1), 1e-4)
    )
    cases.append(
        Case(
            "variance",
            lambda x: relay.variance(x, (0, 2), True, unbiased=True),
            (floats(4, 3, 5),),
            lambda x: x.var((0, 2), ddof=1, keepdims=True),
            1e-4,
        )
    )
    cases.append(
        Case(
            "sum",
            lambda x: relay.logsumexp(x, 1),
            (floats(4, 9),),
            lambda x: np.log(np.exp(x).sum(1)),
            1e-4,
        )
    )
    return cases


def _softmax(x: Array, axis: int = -1) -> Array:
    weights = np.exp(x - x.max(axis, keepdims=True))
    return weights / weights.sum(axis, keepdims=True)


def moving_cases() -> list[Case]:
    x = floats(2, 3, 4)
    rows: list[tuple[str, Callable[..., Any], Sequence[Array], Callable[..., Any]]] = [
        ("reshape", lambda a: relay.reshape(a, (-1, 4)), (x,), lambda a: a.reshape(-1, 4)),
        ("reshape", lambda a: relay.reshape(a, (0, -3)), (x,), lambda a: a.reshape(2, 12)),
        ("reshape", lambda a: relay.reshape(a, (-4, 1, 2, -2)), (x,), lambda a: a.reshape(1, 2, 3, 4)),
        ("reshape", lambda a: relay.reshape(a, (4, 6)), (x,), lambda a: a.reshape(4, 6)),
        ("reshape", lambda a: relay.reshape(a, (1, 1)), (floats(),), lambda a: a.reshape(1, 1)),
        ("reshape_like", relay.reshape_like, (x, floats(6, 4)), lambda a, b: a.reshape(6, 4)),
        ("contrib_reverse_reshape", lambda a: relay.op.transform.reverse_reshape(a, (-1, 0)), (x,), lambda a: a.reshape(6, 4)),
        ("nn.batch_flatten", relay.nn.batch_flatten, (x,), lambda a: a.reshape(2, 12)),
        ("transpose", lambda a: relay.transpose(a, (2, 0, 1)), (x,), lambda a: a.transpose(2, 0, 1)),
        ("transpose", relay.transpose, (x,), lambda a: a.T),
        ("expand_dims", lambda a: relay.expand_dims(a, 1, 2), (x,), lambda a: a[:, None, None]),
        ("expand_dims", lambda a: relay.expand_dims(a, -1), (x,), lambda a: a[..., None]),
        ("squeeze", relay.squeeze, (floats(1, 3, 1),), np.squeeze),
        ("squeeze", lambda a: relay.squeeze(a, -1), (floats(1, 3, 1),), lambda a: a[..., 0]),
        ("broadcast_to", lambda a: relay.broadcast_to(a, (4, 3, 5)), (floats(3, 1),), lambda a: np.broadcast_to(a, (4, 3, 5))),
        ("broadcast_to_like", relay.broadcast_to_like, (floats(3, 1), floats(2, 3, 5)), lambda a, b: np.broadcast_to(a, (2, 3, 5))),
        ("collapse_sum_like", relay.collapse_sum_like, (floats(2, 3, 5), floats(3, 1)), lambda a, b: a.sum((0, 2))[:, None]),
        ("auto_scheduler_layout_transform", lambda a: relay.op.transform.auto_scheduler_layout_transform(a, "8k12j", "3j8k4j"), (floats(8, 12),), lambda a: a.reshape(8, 3, 4).transpose(1, 0, 2)),
        ("auto_scheduler_layout_transform", lambda a: relay.op.transform.auto_scheduler_layout_transform(a, "3j8k4j", "4k12j2k"), (floats(3, 8, 4),), lambda a: a.transpose(1, 0, 2).reshape(4, 2, 12).transpose(0, 2, 1)),
        ("layout_transform", lambda a: relay.layout_transform(a, "NCHW", "NCHW4c"), (floats(1, 8, 3, 5),), lambda a: a.reshape(1, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)),
        ("layout_transform", lambda a: relay.layout_transform(a, "NCHW4c", "NCHW"), (floats(1, 2, 3, 5, 4),), lambda a: a.transpose(0, 1, 4, 2, 3).reshape(1, 8, 3, 5)),
        ("layout_transform", lambda a: relay.layout_transform(a, "NCHW", "NHWC"), (floats(1, 8, 3, 5),), lambda a: a.transpose(0, 2, 3, 1)),
        ("reverse", lambda a: relay.reverse(a, 1), (x,), lambda a: a[:, ::-1]),
        ("concatenate", lambda a, b: relay.concatenate([a, b], 1), (floats(2, 3, 8), floats(2, 5, 8)), lambda a, b: np.concatenate([a, b], 1)),
        ("concatenate", lambda a, b: relay.concatenate([a, b], -1), (floats(2, 3), floats(2, 6)), lambda a, b: np.concatenate([a, b], 1)),
        ("stack", lambda a, b: relay.stack([a, b], 1), (floats(2, 3), floats(2, 3)), lambda a, b: np.stack([a, b], 1)),
        ("split", lambda a: relay.split(a, 3, 1).astuple(), (floats(2, 6),), lambda a: np.split(a, 3, 1)),
        ("split", lambda a: relay.split(a, (1, 4), -1).astuple(), (floats(2, 6),), lambda a: np.split(a, (1, 4), 1)),
        ("repeat", lambda a: relay.repeat(a, 3, 1), (x,), lambda a: a.repeat(3, 1)),
        ("tile", lambda a: relay.tile(a, (2, 1, 3)), (floats(2, 4),), lambda a: np.tile(a, (2, 1, 3))),
        ("meshgrid", lambda a, b: relay.meshgrid([a, b], "ij").astuple(), (floats(3), floats(4)), lambda a, b: np.meshgrid(a, b, indexing="ij")),
        ("take", lambda a, i: relay.take(a, i, 1), (x, ints(2, 2, low=0, high=3)), lambda a, i: np.take(a, i, 1)),
        ("take", lambda a, i: relay.take(a, i), (x, ints(5, low=0, high=24)), np.take),
        ("take", lambda a, i: relay.take(a, i, 0, mode="fast"), (floats(300), ints(5, low=0, high=255, dtype="uint8")), np.take),
        ("take", lambda a, i: relay.take(a, i, 0, mode="wrap"), (floats(3, 16), ints(4, low=-3, high=7, dtype="int64")), lambda a, i: np.take(a, i, 0, mode="wrap")),
        ("take", lambda a, i: relay.take(a, i, 0), (floats(3, 16), ints(4, low=-3, high=7)), lambda a, i: np.take(a, i, 0, mode="clip")),
        ("take", lambda a, i: relay.take(a, i, 1, batch_dims=1), (floats(2, 5), ints(2, 3, low=0, high=5)), lambda a, i: np.take_along_axis(a, i, 1)),
        ("gather_nd", lambda a, i: relay.gather_nd(a, i, batch_dims=1), (floats(2, 5, 3), ints(1, 2, 4, low=0, high=5)), lambda a, i: np.stack([a[b][i[0, b]] for b in range(2)])),
        ("gather", lambda a, i: relay.gather(a, 1, i), (floats(3, 5), ints(3, 2, low=0, high=5, dtype="int64")), lambda a, i: np.take_along_axis(a, i, 1)),
        ("gather_nd", relay.gather_nd, (x, ints(2, 4, low=0, high=2)), lambda a, i: a[i[0], i[1]]),
        ("strided_slice", lambda a: relay.strided_slice(a, [0, 1], [2, -1]), (floats(3, 6),), lambda a: a[0:2, 1:-1]),
        ("strided_slice", lambda a: relay.strided_slice(a, [0, -1], [3, -9], [1, -2]), (floats(3, 6),), lambda a: a[:, ::-2]),
        ("strided_slice", lambda a: relay.strided_slice(a, [1], [2], axes=[1], slice_mode="size"), (floats(3, 6),), lambda a: a[:, 1:3]),
        ("strided_slice", lambda a: relay.strided_slice(a, [0, 0, 0], [9, 2, 99]), (x,), lambda a: a[:, :2]),
        ("slice_like", relay.slice_like, (floats(4, 5), floats(2, 3)), lambda a, b: a[:2, :3]),
        ("where", relay.where, (bools(3, 4), floats(3, 4), floats(4)), np.where),
        ("one_hot", lambda i: relay.one_hot(i, relay.const(1.0), relay.const(0.0), 5, -1, "float32"), (ints(4, low=0, high=5),), lambda i: np.eye(5, dtype="float32")[i]),
        ("trilu", lambda a: relay.op.transform.trilu(a, relay.const(1), True), (floats(5, 6),), lambda a: np.triu(a, 1)),
        ("trilu", lambda a: relay.op.transform.trilu(a, relay.const(0), False), (floats(2, 5, 6),), np.tril),
        ("full", lambda a: relay.full(a, (3, 5)), (floats(),), lambda a: np.full((3, 5), a)),
        ("full_like", lambda a: relay.full_like(a, relay.const(2.5)), (x,), lambda a: np.full_like(a, 2.5)),
        ("zeros", lambda a: relay.add(a, relay.zeros((3,), "float32")), (floats(3),), lambda a: a),
        ("ones", lambda a: relay.add(a, relay.ones((3,), "float32")), (floats(3),), lambda a: a + 1),
        ("arange", lambda a: relay.add(a, relay.arange(relay.const(2.0), relay.const(5.0), relay.const(0.5))), (floats(6),), lambda a: a + np.arange(2, 5, 0.5, dtype="float32")),
        ("shape_of", lambda a: relay.shape_of(a), (x,), lambda a: np.array(a.shape, "int32")),
        ("ndarray_size", lambda a: relay.op.tensor.ndarray_size(a), (x,), lambda a: np.array(a.size, "int32")),
        ("cumsum", lambda a: relay.cumsum(a, 1), (x,), lambda a: a.cumsum(1)),
        ("cumsum", lambda a: relay.cumsum(a, 0, exclusive=True), (ints(5),), lambda a: (a.cumsum() - a).astype(a.dtype)),
        ("cumprod", lambda a: relay.cumprod(a, -1), (x,), lambda a: a.cumprod(-1)),
        ("scatter_elements", lambda a, i, u: relay.scatter_elements(a, i, u, 1, "add"), (floats(3, 5), ints(3, 2, low=0, high=5, dtype="int64"), floats(3, 2)), _scatter_add),
        ("scatter_nd", lambda a, i, u: relay.scatter_nd(a, i, u, "add"), (floats(4, 3), ints(1, 5, low=0, high=4, dtype="int64"), floats(5, 3)), _scatter_nd_add),
        ("image.resize2d", lambda a: relay.image.resize2d(a, (8, 6), method="nearest_neighbor", coordinate_transformation_mode="asymmetric"), (floats(1, 2, 4, 3),), lambda a: a.repeat(2, 2).repeat(2, 3)),
    ]  # fmt: skip
    return [Case(n, b, tuple(i), e) for n, b, i, e in rows]


def _scatter_add(data: Array, indices: Array, updates: Array) -> Array:
    out = data.copy()
    np.add.at(out, (np.arange(data.shape[0])[:, None], indices), updates)
    return out


def _scatter_nd_add(data: Array, indices: Array, updates: Array) -> Array:
    out = data.copy()
    np.add.at(out, tuple(indices), updates)
    return out
