"""Tensors without elements and without axes, and shapes whose codes split and join open axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.analysis import infer_type_of

Array = np.ndarray


def _run(build: Callable[..., Any], arrays: tuple[Array, ...], is_open: bool = False) -> Array:
    params = [
        relay.var(
            f"x{i}", shape=(relay.Any(),) * a.ndim if is_open else a.shape, dtype=str(a.dtype)
        )
        for i, a in enumerate(arrays)
    ]
    mod = tvm.IRModule.from_expr(relay.Function(params, build(*params)))
    kind = "vm" if is_open else "graph"
    run = relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm").evaluate()
    return run(*[tvm.nd.array(a) for a in arrays]).numpy()


def _ones(*shape: int) -> Array:
    return np.ones(shape, "float32")


EMPTY: dict[str, tuple[Callable[..., Any], tuple[Array, ...], Array]] = {
    "tile": (lambda x: relay.tile(x, (2, 2)), (_ones(0, 3),), _ones(0, 6)),
    "tile no times": (lambda x: relay.tile(x, (0, 2)), (_ones(2, 3),), _ones(0, 6)),
    "repeat no times": (lambda x: relay.repeat(x, 0, 1), (_ones(2, 3),), _ones(2, 0)),
    "sum": (lambda x: relay.sum(x, 1), (_ones(2, 0, 3),), np.zeros((2, 3))),
    "prod": (lambda x: relay.prod(x, 1), (_ones(2, 0, 3),), _ones(2, 3)),
    "dense": (relay.nn.dense, (_ones(2, 0), _ones(4, 0)), np.zeros((2, 4))),
    "batch_matmul": (relay.nn.batch_matmul, (_ones(0, 2, 4), _ones(0, 5, 4)), _ones(0, 2, 5)),
    "softmax": (lambda x: relay.nn.softmax(x, 1), (_ones(2, 0),), _ones(2, 0)),
    "layer_norm": (relay.nn.layer_norm, (_ones(0, 3), _ones(3), _ones(3)), _ones(0, 3)),
    "concatenate": (lambda x, y: relay.concatenate([x, y], 0), (_ones(0, 3), _ones(2, 3)), _ones(2, 3)),
    "pad": (lambda x: relay.nn.pad(x, ((1, 1), (0, 0)), 2.0), (_ones(0, 3),), 2 * _ones(2, 3)),
    "sort": (lambda x: relay.sort(x, 1), (_ones(2, 0, 3),), _ones(2, 0, 3)),
    "cumsum": (lambda x: relay.cumsum(x, 1), (_ones(2, 0, 3),), _ones(2, 0, 3)),
    "scatter_elements": (lambda x, i, u: relay.scatter_elements(x, i, u, 0), (_ones(3, 2), np.zeros((0, 2), "int64"), _ones(0, 2)), _ones(3, 2)),
    "max_pool2d": (lambda x: relay.nn.max_pool2d(x, (2, 2), (2, 2)), (_ones(0, 3, 4, 4),), _ones(0, 3, 2, 2)),
}  # fmt: skip


@pytest.mark.parametrize("is_open", [False, True], ids=["known", "open"])
@pytest.mark.parametrize("name", EMPTY)
def test_tensors_without_elements(name: str, is_open: bool) -> None:
    build, arrays, wanted = EMPTY[name]
    found = _run(build, arrays, is_open)
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(found, wanted)


# an axis that the dtype of its indices does not reach
LONG, NEAR = np.arange(300, dtype="float32"), np.array([3, -1, 100], "int8")
ONES = relay.const(np.ones(3, "float32"))
SET = np.where(np.isin(LONG, (3, 299, 100)), 1, LONG)
NARROW: dict[str, tuple[Callable[..., Any], Array]] = {
    "take": (lambda x, i: relay.take(x, i, mode="wrap"), LONG[NEAR]),
    "take clips": (lambda x, i: relay.take(x, i, 0), LONG[[3, 0, 100]]),
    "gather": (lambda x, i: relay.gather(x, 0, i), LONG[[3, 0, 100]]),
    "adv_index": (lambda x, i: relay.adv_index([x, i]), LONG[NEAR]),
    "scatter_elements": (lambda x, i: relay.scatter_elements(x, i, ONES), SET),
    "scatter_nd": (lambda x, i: relay.scatter_nd(x, relay.expand_dims(i, 0), ONES), SET),
    "one_hot": (lambda x, i: relay.one_hot(i, relay.const(1.0), relay.const(0.0), 300, -1, "float32"), (NEAR[:, None] == np.arange(300)).astype("float32")),
    "unravel_index": (lambda x, i: relay.unravel_index(relay.abs(i), relay.const((2, 300))), np.array([[0, 0, 0], [3, 1, 100]])),
}  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_indices_of_few_bits_reach_all_elements(name: str) -> None:
    build, wanted = NARROW[name]
    np.testing.assert_array_equal(_run(build, (LONG, NEAR)), wanted)


def test_lengths_beyond_the_data_reverse_all_of_it() -> None:
    data = np.arange(6, dtype="float32").reshape(2, 3)
    found = _run(lambda x, n: relay.reverse_sequence(x, n, 1, 0), (data, np.array([9, 2])))
    np.testing.assert_array_equal(found, [[2, 1, 0], [4, 3, 5]])


SCALAR = np.array(0.5, "float32")
WITHOUT_AXES: dict[str, tuple[Callable[..., Any], Any]] = {
    "argmax": (relay.argmax, 0),
    "sum": (relay.sum, 0.5),
    "cumsum": (relay.cumsum, [0.5]),
    "expand_dims": (lambda x: relay.expand_dims(x, -1, 2), [[0.5]]),
    "tile": (lambda x: relay.tile(x, (2,)), [0.5, 0.5]),
    "stack": (lambda x: relay.stack([x, x], 0), [0.5, 0.5]),
    "take": (lambda x: relay.take(relay.const(np.arange(3.0)), relay.cast(x, "int32"), 0), 0.0),
    "collapse_sum_like": (lambda x: relay.collapse_sum_like(relay.broadcast_to(x, (2, 3)), x), 3.0),
}


@pytest.mark.parametrize("name", WITHOUT_AXES)
def test_tensors_without_axes(name: str) -> None:
    build, wanted = WITHOUT_AXES[name]
    found = _run(build, (SCALAR,))
    assert found.shape == np.shape(wanted)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("codes", "shape"),
    [
        ((0, -4, -1, 4, 0), (2, 3, 4, 3)), ((0, -4, 3, -1, -2), (2, 3, 4, 3)), ((-3, -2), (24, 3)),
        ((-4, -1, 1, 0, 0), (2, 1, 12, 3)), ((-4, 2, -1, -3), (2, 1, 36)), ((6, -1), (6, 12)),
    ],
)  # fmt: skip
def test_reshape_splits_and_joins_open_axes(codes: tuple[int, ...], shape: tuple[int, ...]) -> None:
    data = np.arange(72, dtype="float32").reshape(2, 12, 3)
    found = _run(lambda x: relay.reshape(x, codes), (data,), is_open=True)
    np.testing.assert_array_equal(found, data.reshape(shape))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_half_precision_do_not_stop_growing(dtype: str) -> None:
    def build(x: relay.Var) -> relay.Expr:
        half = relay.cast(x, dtype)
        parts = [relay.sum(half, 1), relay.mean(half, 1), relay.variance(half, 1)]
        return relay.cast(relay.stack(parts, 0), "float32")

    found = _run(build, (np.tile(np.array([1, 3], "float32"), (2, 2048)),))
    np.testing.assert_array_equal(found, [[8192, 8192], [2, 2], [1, 1]])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_means_of_small_integers_keep_their_range(dtype: str) -> None:
    found = _run(lambda x: relay.mean(x, 1), (np.full((2, 900), 100, dtype),))
    np.testing.assert_array_equal(found, [100, 100])


@pytest.mark.parametrize("build", [relay.exp, relay.sqrt, relay.nn.softmax, relay.nn.l2_normalize])
def test_functions_of_real_numbers_reject_integers(build: Callable[..., Any]) -> None:
    x = relay.var("x", shape=(2, 3), dtype="int32")
    body = build(x, 1e-5, [1]) if build is relay.nn.l2_normalize else build(x)
    with pytest.raises(tvm.error.TypeCheckError, match="requires floating-point numbers for data"):
        relay.build(relay.Function([x], body), "llvm")


def test_kernels_of_bits_reject_real_numbers() -> None:
    x, one = relay.var("x", shape=(2, 3)), relay.const(1.0)
    calls = {"bitwise_not": relay.bitwise_not(x), "left_shift": relay.left_shift(x, one)}
    for name, body in {**calls, "bitwise_and": relay.bitwise_and(one, one)}.items():
        assert str(infer_type_of(body).dtype) == "float32"
        with pytest.raises(tvm.error.TypeCheckError, match=f"{name} requires integers, got float"):
            relay.build(relay.Function(relay.analysis.free_vars(body), body), "llvm")


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "dense": (relay.nn.dense, (3, 300), (5, 300)),
    "batch_matmul": (relay.nn.batch_matmul, (2, 3, 300), (2, 5, 300)),
    "conv1d": (lambda x, w: relay.nn.conv1d(x, w, padding=(1, 1)), (1, 64, 9), (4, 64, 3)),
    "conv2d": (lambda x, w: relay.nn.conv2d(x, w, padding=(1, 1)), (1, 64, 5, 5), (16, 64, 3, 3)),
    "conv2d in groups": (lambda x, w: relay.nn.conv2d(x, w, groups=2), (1, 64, 5, 5), (4, 32, 3, 3)),
    "conv3d": (relay.nn.conv3d, (1, 32, 3, 3, 3), (4, 32, 3, 3, 3)),
    "conv2d_transpose": (relay.nn.conv2d_transpose, (1, 64, 4, 4), (64, 4, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_bfloat16_are_added_in_float32(name: str) -> None:
    build, *shapes = PRODUCTS[name]
    rng = np.random.default_rng(4)
    # few bits, so that both dtypes hold the same numbers
    arrays = tuple([rng.integers(1, 64, shape).astype("float32") / 64 for shape in shapes])

    def halves(*args: relay.Var) -> relay.Expr:
        return relay.cast(build(*[relay.cast(a, "bfloat16") for a in args]), "float32")

    wanted = _run(build, arrays)
    assert np.abs(_run(halves, arrays) - wanted).max() < 2**-8 * np.abs(wanted).max()


def test_an_extent_of_nothing_leaves_no_other_one_open() -> None:
    x = relay.var("x", shape=(0, 3))
    call = relay.reshape(x, (0, -1), allowzero=True)
    with pytest.raises(tvm.error.TypeCheckError, match="no -1 beside an extent of 0"):
        relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], call)))


def test_many_tensors_are_joined() -> None:
    parts = tuple([np.full((1 + i % 3, 2), i, "float32") for i in range(90)])
    for join, wanted in (
        (lambda *x: relay.concatenate(list(x), 0), np.concatenate(parts)),
        (lambda *x: relay.stack([relay.sum(y) for y in x], 0), np.array([p.sum() for p in parts])),
    ):
        np.testing.assert_array_equal(_run(join, parts), wanted)


def test_axes_of_one_element_are_reflected_onto_it() -> None:
    data, grid = np.array([[[[3.0], [5.0]]]], "float32"), np.zeros((1, 2, 1, 3), "float32")
    grid[0, 0], grid[0, 1] = [[-1.4, 0.3, 2.0]], [[-1, 0, 1]]
    found = _run(
        lambda x, g: relay.image.grid_sample(x, g, "bilinear", "NCHW", "reflection", True),
        (data, grid),
    )
    np.testing.assert_array_equal(found, [[[[3, 4, 5]]]])


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize("name", ["divide", "floor_divide", "trunc_divide", "mod", "floor_mod"])
def test_divisions_at_the_limits_are_numpys_folded_or_not(name: str, opt_level: int) -> None:
    a = np.array([-(2**31), -(2**31), -7, 2**31 - 1, 5, -(2**31)], "int32")
    b = np.array([-1, 0, 0, -1, 0, 2], "int32")
    with np.errstate(all="ignore"):
        wanted = {"mod": np.fmod, "floor_mod": np.mod}.get(name, np.floor_divide)(a, b)
    x, y = [relay.var(n, shape=a.shape, dtype="int32") for n in "xy"]
    operator = getattr(relay, name)
    folded = operator(relay.const(a), relay.const(b))
    func = relay.Function(
        [x, y], relay.Tuple([operator(x, y), operator(x, relay.const(b)), folded])
    )
    with tvm.transform.PassContext(opt_level=opt_level):
        found = relay.create_executor("graph", mod=tvm.IRModule.from_expr(func)).evaluate()(a, b)
    for result in found:
        np.testing.assert_array_equal(result.numpy(), wanted)
