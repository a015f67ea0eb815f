"""NaN and infinity come out as numpy and PyTorch have them: at every level, from every back end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib.graph_executor import GraphModule

DTYPES = {
    "float32": np.float32,
    "float64": np.float64,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
SHAPE = (16, 6, 37)
ROWS = (16 * 6, 37)
NAN, INF = np.nan, np.inf


def specials(seed: int) -> np.ndarray:
    """Rows with a NaN in front, in the middle or at the end, with infinities, of nothing else."""
    x = np.random.default_rng(seed).integers(-16, 17, ROWS).astype(np.float32) / 4
    for row, places in enumerate([(0,), (18,), (36,), (0, 36), (3, 4, 5), ()] * 4):
        x[row, list(places)] = NAN
        x[row + 24, list(places)] = INF
        x[row + 48, list(places)] = -INF
    x[3, 9], x[4, 30], x[0, 7], x[1, 2] = INF, INF, -INF, -INF
    x[90], x[91], x[92] = NAN, INF, -INF
    x[93, :20], x[94, 20:] = -INF, NAN
    return x.reshape(SHAPE)


def windows(x: np.ndarray, kernel: tuple[int, ...], stride: int, padding: int) -> np.ndarray:
    """Maxima of windows over the last axes; what surrounds the tensor is never the greatest."""
    rank = len(kernel)
    around = [(0, 0)] * (x.ndim - rank) + [(padding, padding)] * rank
    x = np.pad(x, around, constant_values=-INF)
    views = np.lib.stride_tricks.sliding_window_view(x, kernel, tuple(range(x.ndim - rank, x.ndim)))
    steps = (slice(None),) * (x.ndim - rank) + (slice(None, None, stride),) * rank
    return views[steps].max(tuple(range(-rank, 0)))


def adaptive(x: np.ndarray, size: int) -> np.ndarray:
    width = x.shape[-1]
    parts = [x[..., i * width // size : -(-(i + 1) * width // size)] for i in range(size)]
    return np.stack([part.max(-1) for part in parts], -1)


def sorted_(x: np.ndarray, descending: bool = False) -> np.ndarray:
    found = np.sort(x, -1)
    return found[..., ::-1] if descending else found


def order(x: np.ndarray, descending: bool) -> np.ndarray:
    """Stable, NaN the greatest."""
    if not descending:
        return np.argsort(x, -1, kind="stable")
    key = np.where(np.isnan(x), INF, x)
    return np.lexsort((np.broadcast_to(np.arange(x.shape[-1]), x.shape), -key, ~np.isnan(x)))


def blocked_pool(x: relay.Expr) -> relay.Expr:
    x = relay.layout_transform(relay.expand_dims(x, 0), "NCHW", "NCHW8c")
    x = relay.nn.max_pool2d(x, (3, 3), (2, 2), padding=(1, 1), layout="NCHW8c")
    return relay.squeeze(relay.layout_transform(x, "NCHW8c", "NCHW"), axis=[0])


def hard_sigmoid(x: relay.Expr, dtype: str) -> relay.Expr:
    return relay.clip(x * relay.const(0.25, dtype) + relay.const(0.5, dtype), 0.0, 1.0)


def _pool(function: Callable[..., Any], count: int, **attrs: Any) -> Callable[[Any], Any]:
    """A pooling of three axes as one of fewer or more."""

    def build(x: Any) -> Any:
        x = relay.expand_dims(x, 0, count) if count else x
        x = function(x, **attrs)
        return relay.squeeze(x, axis=list(range(count))) if count else x

    return build


nn = relay.nn
SLOPES = np.linspace(-1, 1, 6).astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)

# in relay, of (x, y, dtype), and in numpy
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relu": (lambda x, y, t: nn.relu(x), lambda x, y: np.maximum(x, 0)),
    "relu_of_sum": (lambda x, y, t: nn.relu(relay.negative(x)), lambda x, y: np.maximum(-x, 0)),
    "clip": (lambda x, y, t: relay.clip(x, -1.5, 2.0), lambda x, y: np.clip(x, -1.5, 2)),
    "sign": (lambda x, y, t: relay.sign(x), lambda x, y: np.sign(x)),
    "leaky_relu": (lambda x, y, t: nn.leaky_relu(x, 0.5), lambda x, y: np.where(x > 0, x, x * 0.5)),
    "prelu": (
        lambda x, y, t: nn.prelu(x, relay.const(SLOPES.astype(DTYPES[t])), axis=1),
        lambda x, y: np.where(x > 0, x, x * SLOPES[:, None]),
    ),
    "hard_sigmoid": (
        lambda x, y, t: hard_sigmoid(x, t),
        lambda x, y: np.clip(x * 0.25 + 0.5, 0, 1),
    ),
    "hard_swish": (
        lambda x, y, t: x * hard_sigmoid(x, t),
        lambda x, y: x * np.clip(x * 0.25 + 0.5, 0, 1),
    ),
    "maximum": (lambda x, y, t: relay.maximum(x, y), np.maximum),
    "minimum": (lambda x, y, t: relay.minimum(x, y), np.minimum),
    "minimum_of_scalar": (
        lambda x, y, t: relay.minimum(relay.const(NAN, t), x),
        lambda x, y: x * NAN,
    ),
    "max": (lambda x, y, t: relay.max(x, axis=-1), lambda x, y: x.max(-1)),
    "min": (lambda x, y, t: relay.min(x, axis=-1), lambda x, y: x.min(-1)),
    "max_of_columns": (lambda x, y, t: relay.max(x, axis=[0, 1]), lambda x, y: x.max((0, 1))),
    "max_of_all": (lambda x, y, t: relay.max(x), lambda x, y: x.max()),
    "argmax": (lambda x, y, t: relay.argmax(x, axis=-1), lambda x, y: x.argmax(-1)),
    "argmin": (lambda x, y, t: relay.argmin(x, axis=-1), lambda x, y: x.argmin(-1)),
    "argmax_of_columns": (lambda x, y, t: relay.argmax(x, axis=0), lambda x, y: x.argmax(0)),
    "last_argmax": (
        lambda x, y, t: relay.argmax(x, axis=-1, select_last_index=True),
        lambda x, y: 36 - x[..., ::-1].argmax(-1),
    ),
    "sort": (lambda x, y, t: relay.sort(x), lambda x, y: sorted_(x)),
    "sort_down": (lambda x, y, t: relay.sort(x, is_ascend=False), lambda x, y: sorted_(x, True)),
    "argsort": (lambda x, y, t: relay.argsort(x, dtype="int32"), lambda x, y: order(x, False)),
    "argsort_down": (
        lambda x, y, t: relay.argsort(x, is_ascend=False, dtype="int32"),
        lambda x, y: order(x, True),
    ),
    "topk": (lambda x, y, t: relay.topk(x, 5, ret_type="values"), lambda x, y: sorted_(x, True)[..., :5]),
    "topk_indices": (
        lambda x, y, t: relay.topk(x, 5, ret_type="indices", dtype="int32"),
        lambda x, y: order(x, True)[..., :5],
    ),
    "max_pool1d": (
        lambda x, y, t: _pool(nn.max_pool1d, 0, pool_size=3, strides=2, padding=1)(x),
        lambda x, y: windows(x, (3,), 2, 1),
    ),
    "max_pool2d": (
        lambda x, y, t: _pool(nn.max_pool2d, 1, pool_size=(3, 3), strides=(2, 2), padding=(1, 1))(x),
        lambda x, y: windows(x, (3, 3), 2, 1),
    ),
    "blocked_max_pool2d": (lambda x, y, t: blocked_pool(x), lambda x, y: windows(x, (3, 3), 2, 1)),
    "max_pool3d": (
        lambda x, y, t: _pool(nn.max_pool3d, 2, pool_size=(3, 3, 3), padding=(1, 1, 1))(x),
        lambda x, y: windows(x, (3, 3, 3), 1, 1),
    ),
    "adaptive_max_pool1d": (
        lambda x, y, t: nn.adaptive_max_pool1d(x, 5),
        lambda x, y: adaptive(x, 5),
    ),
    "adaptive_max_pool2d": (
        lambda x, y, t: _pool(nn.adaptive_max_pool2d, 1, output_size=(6, 4))(x),
        lambda x, y: adaptive(x, 4),
    ),
    "global_max_pool2d": (
        lambda x, y, t: _pool(nn.global_max_pool2d, 1)(x),
        lambda x, y: x.max((1, 2), keepdims=True),
    ),
}  # fmt: skip


VARIANTS = [
    *[(dtype, target, level) for dtype in DTYPES for target in ("llvm", "c") for level in (0, 3)],
    ("float32", "llvm", 2),
]


@pytest.mark.parametrize(("dtype", "target", "opt_level"), VARIANTS)
def test_nan_and_infinity_are_kept(dtype: str, target: str, opt_level: int, tmp_path: Path) -> None:
    params = [relay.var(name, shape=SHAPE, dtype=dtype) for name in "xy"]
    outputs = relay.Tuple([build(*params, dtype) for build, _ in CASES.values()])
    mod = tvm.IRModule.from_expr(relay.Function(params, outputs))
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(mod, target)
    if target == "c":
        lib.export_library(tmp_path / "lib.so")
        lib = tvm.runtime.load_module(tmp_path / "lib.so")
    values = [specials(seed).astype(DTYPES[dtype]) for seed in (1, 2)]
    machine = GraphModule(lib["default"](tvm.cpu()))
    machine.run(**dict(zip("xy", values, strict=True)))
    wide = [value.astype(np.float64) for value in values]
    tolerance = 1e-2 if dtype == "bfloat16" else 1e-3
    with np.errstate(invalid="ignore"):
        for i, (name, (_, reference)) in enumerate(CASES.items()):
            found = machine.get_output(i).numpy()
            np.testing.assert_allclose(
                found.astype(np.float64), reference(*wide), rtol=tolerance, err_msg=name
            )


def test_the_folder_keeps_nan() -> None:
    x, y = [specials(seed) for seed in (1, 2)]
    constants = [relay.const(x), relay.const(y)]
    for name, (build, reference) in CASES.items():
        mod = tvm.IRModule.from_expr(relay.Function([], build(*constants, "float32")))
        folded = relay.transform.FoldConstant()(relay.transform.InferType()(mod))["main"].body
        if isinstance(folded, relay.Constant):
            with np.errstate(invalid="ignore"):
                np.testing.assert_array_equal(folded.data.numpy(), reference(x, y), err_msg=name)


@pytest.mark.parametrize("opt_level", [0, 3])
def test_logsumexp_of_infinities_is_no_nan(opt_level: int) -> None:
    x = relay.var("x", shape=SHAPE)
    with tvm.transform.PassContext(opt_level=opt_level):
        lib = relay.build(tvm.IRModule.from_expr(relay.logsumexp(x, axis=-1)), "llvm")
    machine, value = GraphModule(lib["default"](tvm.cpu())), specials(1)
    machine.run(x=value)
    expected = np.logaddexp.reduce(value.astype(np.float64), -1)
    assert np.isposinf(expected).any() and np.isneginf(expected).any()
    np.testing.assert_allclose(machine.get_output(0).numpy(), expected, rtol=1e-5)
