"""Small computes of topi, each against numpy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te, tir, topi
from tvm.topi import testing as ref

Array = np.ndarray
RNG = np.random.default_rng(23)


def _floats(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype("float32")


def _run(build: Any, *arrays: Array) -> Any:
    inputs = [te.placeholder(a.shape, str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
    built = build(*inputs)
    outs = [built] if isinstance(built, te.Tensor) else list(built)
    with tvm.target.Target("llvm"):
        s = topi.testing.get_injective_schedule("llvm")(outs)
    function = tvm.build(s, [*inputs, *outs], "llvm")
    found = [tvm.nd.array(np.zeros([int(d) for d in o.shape], o.dtype)) for o in outs]
    function(*[tvm.nd.array(a) for a in arrays], *found)
    values = [f.numpy() for f in found]
    return values[0] if isinstance(built, te.Tensor) else values


@pytest.mark.parametrize("axes", [((1, 2), (1, 0)), 1, ((2,), (0,)), ((), ()), ((-1,), (0,))])
def test_tensordot(axes: Any) -> None:
    a, b = _floats(2, 3, 4), _floats(4, 3, 5)
    found = _run(lambda x, y: topi.tensordot(x, y, axes), a, b)
    np.testing.assert_allclose(found, np.tensordot(a, b, axes), rtol=1e-4, atol=1e-5)


def test_matmul_of_transposed_matrices() -> None:
    a, b = _floats(3, 2), _floats(4, 3)
    found = _run(lambda x, y: topi.matmul(x, y, True, True), a, b)
    np.testing.assert_allclose(found, a.T @ b.T, rtol=1e-5)


@pytest.mark.parametrize(
    "batches", [((4,), (4,)), ((4,), (1,)), ((), (4,)), ((2, 1), (3,)), ((4,), ())]
)
def test_batches_of_matrices_are_broadcast(batches: Any) -> None:
    a, b, bias = _floats(*batches[0], 5, 3), _floats(*batches[1], 2, 3), _floats(2)
    found = _run(lambda x, y, z: topi.nn.matmul(x, y, z, transpose_b=True), a, b, bias)
    np.testing.assert_allclose(found, a @ b.swapaxes(-1, -2) + bias, rtol=1e-4, atol=1e-5)
    found = _run(
        lambda x, y: topi.nn.matmul(x, y, transpose_a=True), a.swapaxes(-1, -2).copy(),
        b.swapaxes(-1, -2).copy(),
    )  # fmt: skip
    np.testing.assert_allclose(found, a @ b.swapaxes(-1, -2), rtol=1e-4, atol=1e-5)


def test_expand_like_repeats_along_the_axes_that_are_missing() -> None:
    a, like = _floats(3), _floats(2, 3, 4)
    found = _run(lambda x, y: topi.transform.expand_like(x, y, [0, -1]), a, like)
    np.testing.assert_array_equal(found, np.broadcast_to(a[None, :, None], (2, 3, 4)))


def test_windows_whose_bounds_are_data() -> None:
    a, bounds = _floats(6, 4), [np.array(b) for b in ([1, 0], [5, 4], [2, 3])]
    found = _run(lambda x, b, e, s: topi.dynamic_strided_slice(x, b, e, s, (2, 2)), a, *bounds)
    np.testing.assert_array_equal(found, a[1:5:2, 0:4:3])


def test_tensors_bound_windows_of_open_extents() -> None:
    a, bounds = _floats(6, 4), [np.array(b, "int64") for b in ([1], [5], [2])]
    x, *limits = [te.placeholder(v.shape, str(v.dtype)) for v in (a, *bounds)]
    out = topi.strided_slice(x, *limits)
    function = tvm.build(te.create_schedule(out.op), [x, *limits, out], "llvm")
    found = tvm.nd.array(np.zeros((2, 4), "float32"))
    function(*[tvm.nd.array(v) for v in (a, *bounds)], found)
    np.testing.assert_array_equal(found.numpy(), a[1:5:2])
    with pytest.raises(tvm.error.RuntimeTypeError, match="tensors for all of begin, end"):
        topi.strided_slice(x, limits[0], [5], [2])
    with pytest.raises(tvm.error.RuntimeValueError, match="requires no axes"):
        topi.strided_slice(x, *limits, axes=[1])


def test_each_sequence_has_a_length() -> None:
    x, lengths = te.placeholder((4, 4)), te.placeholder((5,), "int32")
    with pytest.raises(tvm.error.RuntimeValueError, match="a length for each of 4 sequences"):
        topi.reverse_sequence(x, lengths, 1, 0)


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [([1, 0], [-1, 4], None), ([-4, 1], [None, -1], None), ([0, 0], [100, 3], [2, 1])],
)
def test_windows_of_open_extents(begin: Any, end: Any, strides: Any) -> None:
    n, a = te.size_var("n"), _floats(7, 4)
    x = te.placeholder((n, 4))
    out = topi.strided_slice(x, begin, end, strides)
    wanted = a[
        tuple([slice(b, e, s) for b, e, s in zip(begin, end, strides or [1, 1], strict=True)])
    ]
    found = tvm.nd.array(np.zeros(wanted.shape, "float32"))
    tvm.build(te.create_schedule(out.op), [x, out], "llvm")(tvm.nd.array(a), found)
    np.testing.assert_array_equal(found.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "float32"])
def test_ceil_log2(dtype: str) -> None:
    numbers = np.array([1, 2, 3, 5, 64, 100], dtype)
    found = _run(lambda x: te.compute(x.shape, lambda i: topi.math.ceil_log2(x[i])), numbers)
    np.testing.assert_array_equal(found, [0, 1, 2, 3, 6, 7])


def test_matrices_of_constants() -> None:
    table = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(_run(lambda: topi.utils.const_matrix(table)), table)
    np.testing.assert_array_equal(_run(lambda: topi.utils.const_vector(table[1])), table[1])


@pytest.mark.parametrize("steps", [range(1, 7, 2), range(6, 0, -2)])
def test_positions_in_a_selection(steps: range) -> None:
    bounds = [tir.const(v, "int32") for v in (steps.start, steps.stop, steps.step)]
    simplify = tvm.arith.Analyzer().simplify
    for i in range(9):
        at = tir.const(i, "int32")
        within = bool(simplify(topi.utils.within_index(*bounds, at)).value)
        assert within == (i in steps)
        if within:
            place = topi.utils.make_idx(*bounds, tir.const(9, "int32"), at)
            assert int(simplify(place).value) == steps.index(i)


def test_shapes_in_other_layouts() -> None:
    assert topi.utils.get_shape((1, 16, 4, 5), "NCHW", "NHWC") == (1, 4, 5, 16)
    assert topi.utils.get_shape((1, 16, 4, 5), "NCHW", "NCHW8c") == (1, 2, 4, 5, 8)


@pytest.mark.parametrize("is_training", [False, True])
def test_batch_norm_moves_its_statistics_in_training_alone(is_training: bool) -> None:
    data, vectors = _floats(3, 4, 5), [_floats(4) ** 2 for _ in range(4)]
    options = (1, 1e-5, True, True, is_training, 0.3)
    found = _run(lambda *t: topi.nn.batch_norm(*t, *options), data, *vectors)
    for have, want in zip(found, ref.batch_norm(data, *vectors, *options), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric"])
def test_the_nearest_element_is_the_one_before_unless_corners_are_aligned(mode: str) -> None:
    data = _floats(1, 1, 3, 7)
    found = _run(lambda x: topi.image.resize2d(x, None, (6, 4), "NCHW", "nearest_neighbor", mode), data)  # fmt: skip
    round_up = 0.5 if mode == "align_corners" else 1e-5
    at = [[ref.get_inx(i, n, m, mode) for i in range(m)] for n, m in ((3, 6), (7, 4))]
    rows, columns = [np.clip(np.floor(np.array(p) + round_up), 0, None).astype(int) for p in at]
    np.testing.assert_array_equal(found[0, 0], data[0, 0][np.ix_(rows, columns)])


@pytest.mark.parametrize("rank", range(1, 6))
def test_argwhere_of_each_rank(rank: int) -> None:
    condition = RNG.integers(0, 2, (3,) * rank).astype(bool)
    wanted = np.argwhere(condition)
    build = getattr(importlib.import_module("tvm.topi.argwhere"), f"hybrid_argwhere_{rank}d")
    np.testing.assert_array_equal(_run(lambda c: build(wanted.shape, c), condition), wanted)
    with pytest.raises(ValueError, match=f"hybrid_argwhere_{rank}d requires"):
        build((1, rank), te.placeholder((2,) * (rank + 1)))


def test_slices_are_picked_by_the_integral_part_of_real_numbers() -> None:
    table, places = _floats(2, 3, 4), np.array([[1.8, 0.0], [0.0, 2.2]], "float32")
    found = _run(topi.gather_nd, table, places)
    np.testing.assert_array_equal(found, ref.gather_nd_python(table, places.astype("int32")))


def test_truth_values_are_added_as_numpy_adds_them() -> None:
    a, b = RNG.integers(0, 2, (2, 3, 5)).astype(bool)
    np.testing.assert_array_equal(_run(topi.add, a, b), a + b)
    np.testing.assert_array_equal(_run(lambda x: topi.sum(x, axis=1), a), a.any(1))


def test_unsigned_numbers_are_negated_as_numpy_negates_them() -> None:
    numbers = np.array([0, 1, 200], "uint8")
    np.testing.assert_array_equal(_run(topi.negative, numbers), -numbers)


@pytest.mark.parametrize("name", ["exp", "sqrt", "tanh", "log", "sigmoid"])
def test_functions_of_real_numbers_reject_integers(name: str) -> None:
    with pytest.raises(TypeError, match=f"topi.{name} requires floating-point numbers, got int32"):
        getattr(topi, name)(te.placeholder((2,), "int32"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16"])
@pytest.mark.parametrize("size", [(1, 1), (3, 2)])
def test_means_of_windows_keep_their_range(dtype: str, size: tuple[int, int]) -> None:
    data = np.full((1, 2, 200, 100), 100, dtype)
    found = _run(lambda x: topi.nn.adaptive_pool(x, size, "avg"), data)
    np.testing.assert_array_equal(found, np.full((1, 2, *size), 100, dtype))


def test_a_box_of_the_whole_image_keeps_its_corners() -> None:
    image, box = _floats(1, 5, 4, 2), np.array([[0, 0, 1, 1]], "float32")
    index, size = np.zeros(1, "int32"), (3, 3)
    wanted = ref.crop_and_resize_python(image, box, index, size, "NHWC")
    np.testing.assert_allclose(wanted[0, ::2, ::2], image[0, ::4, ::3], rtol=1e-6)
    found = _run(lambda *t: topi.image.crop_and_resize(*t, size, layout="NHWC"), image, box, index)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_names_of_blocked_layouts() -> None:
    assert topi.utils.nchw_pack_layout((2, 16)) == "NCHW2n16c"
    assert topi.utils.ncw_xc_layout((2, 16)) == "NCW16c"


def test_computes_have_their_first_names() -> None:
    names = {"sub": "subtract", "mul": "multiply", "div": "divide"}
    for old in ("add", "sub", "mul", "div", "maximum", "minimum"):
        a, b = _floats(3, 1), _floats(4)
        new = names.get(old, old)
        first, found = [_run(getattr(topi, n), a, b) for n in (f"broadcast_{old}", new)]
        np.testing.assert_array_equal(first, found)
        np.testing.assert_allclose(first, getattr(np, new)(a, b), rtol=1e-6)


@pytest.mark.parametrize("extent", [0, te.var("n")], ids=["known", "open"])
def test_running_sums_over_an_empty_axis_store_nothing(extent: Any) -> None:
    x = te.placeholder((2, extent, 3), name="x")
    y = topi.cumsum(x, axis=1)
    func = tvm.build(te.create_schedule(y.op), [x, y], "llvm")
    # as large as what stores in front of the axis would hit
    memory = tvm.nd.array(np.full(16, 7, "float32"))
    func(tvm.nd.empty((2, 0, 3)), memory._create_view((2, 0, 3)))
    np.testing.assert_array_equal(memory.numpy(), np.full(16, 7, "float32"))


def test_a_slice_with_too_few_new_elements_reads_nothing_else() -> None:
    """Bounds and extents that only the run knows may not agree."""
    a, v, bounds = np.zeros(8, "float32"), np.ones(2, "float32"), np.array([[1], [7], [2]], "int32")
    wanted = np.array([0, 1, 0, 1, 0, 0, 0, 0], "float32")
    np.testing.assert_array_equal(_run(topi.strided_set, a, v, *bounds), wanted)
    written = _run(lambda a, v: topi.slice_scatter(a, v, 1, 7, 2, 0), a, v)
    np.testing.assert_array_equal(written, wanted)


def test_selu_keeps_its_digits_near_zero() -> None:
    x = np.array([-1e-30, -3e-8, -1e-4, -0.3, -20.0, -300.0, -0.0, 1e-30, 5.0, np.nan], "float32")
    wide = x.astype("float64")
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    wanted = scale * np.where(wide > 0, wide, alpha * np.expm1(wide))
    found = _run(topi.nn.selu, x)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
