"""Pieces of computes that programs build their own from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay, te, tir, topi
from tvm.topi.searchsorted import binary_search
from tvm.topi.sparse.utils import random_bsr_matrix

Array = np.ndarray
RNG = np.random.default_rng(5)


def _run(out: te.Tensor, tensors: Sequence[te.Tensor], arrays: Sequence[Array]) -> Array:
    function = tvm.build(te.create_schedule(out.op), [*tensors, out], "llvm")
    found = tvm.nd.array(np.zeros([int(d) for d in out.shape], out.dtype))
    function(*[tvm.nd.array(a) for a in arrays], found)
    return found.numpy()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NCHW4c", "NCHW2n4c"])
def test_pixels_outside_repeat_the_edge(layout: str) -> None:
    extents = {"N": 2, "C": 3, "H": 4, "W": 5, "n": 2, "c": 4}
    names = [letter for letter in layout if letter.isalpha()]
    data = RNG.uniform(size=[extents[a] for a in names]).astype("float32")
    x = te.placeholder(data.shape, name="x")

    def element(*i: Any) -> Any:
        n, c, y, z, cc, inum, ic = topi.image.get_2d_indices(i, layout)
        return topi.image.get_2d_pixel(x, layout, 4, 5, n, c, y - 1, z + 2, cc, inum, ic)

    rows, columns = np.arange(4) - 1, np.arange(5) + 2
    wanted = np.take(data, rows, names.index("H"), mode="clip")
    wanted = np.take(wanted, columns, names.index("W"), mode="clip")
    np.testing.assert_array_equal(_run(te.compute(data.shape, element), [x], [data]), wanted)


@pytest.mark.parametrize(
    ("mode", "rounding", "wanted"),
    [("asymmetric", "floor", [0, 0, 1, 2]), ("align_corners", "round", [0, 1, 1, 2]),
     ("half_pixel", "round_prefer_floor", [0, 1, 1, 2]), ("half_pixel", "ceil", [0, 1, 2, 3])],
)  # fmt: skip
def test_positions_and_the_nearest_of_them(mode: str, rounding: str, wanted: list[int]) -> None:
    def element(i: tir.Var) -> Any:
        place = topi.image.get_inx(i, 3, 4, mode)
        return topi.image.get_closest_index(place, rounding, None)

    np.testing.assert_array_equal(_run(te.compute((4,), element), [], []), wanted)


def test_integral_factors_divide_integers() -> None:
    assert topi.image.can_convert_multiply_to_intdiv(4, 12)
    assert not topi.image.can_convert_multiply_to_intdiv(5, 12)
    assert not topi.image.can_convert_multiply_to_intdiv(te.var("n"), 12)
    out = te.compute((6,), lambda i: topi.image.get_inx(i, 3, 6, "asymmetric", use_int_div=True))
    np.testing.assert_array_equal(_run(out, [], []), [0, 0, 1, 1, 2, 2])


@pytest.mark.parametrize(("tile", "window"), [(2, 3), (4, 3), (3, 5), (1, 2)])
def test_winograd_matrices_filter(tile: int, window: int) -> None:
    tensors = topi.nn.winograd_transform_matrices(tile, window, "float64")
    a, b, g = [_run(topi.identity(t), [], []) for t in tensors]
    signal, taps = RNG.uniform(size=tile + window - 1), RNG.uniform(size=window)
    wanted = [signal[i : i + window] @ taps for i in range(tile)]
    np.testing.assert_allclose(a.T @ ((g @ taps) * (b.T @ signal)), wanted, rtol=1e-9)


@pytest.mark.parametrize("rank", [2, 3])
def test_spread_data_convolve_to_the_transposed_convolution(rank: int) -> None:
    spatial, window = (4, 3, 5)[:rank], (3, 2, 4)[:rank]
    data, kernel = RNG.uniform(size=(2, 3, *spatial)), RNG.uniform(size=(3, 4, *window))
    x, w = [te.placeholder(a.shape, "float64", n) for a, n in ((data, "x"), (kernel, "w"))]
    steps, extra = (2, 1, 3)[:rank], (1, 0, 2)[:rank]
    name = "conv2d_transpose_impl" if rank == 2 else "conv3d_transpose_impl"
    plain = topi.nn.conv2d_transpose_nchw if rank == 2 else topi.nn.conv3d_transpose_ncdhw
    own, other = [
        f(x, w, steps, (1,) * rank, "float64", extra)
        for f in (getattr(topi.nn, f"declaration_{name}"), plain)
    ]
    wanted = _run(other, [x, w], [data, kernel])
    np.testing.assert_allclose(_run(own, [x, w], [data, kernel]), wanted)


@pytest.mark.parametrize("right", [False, True])
def test_values_are_searched_in_a_part_of_a_buffer(right: bool) -> None:
    rows, values = np.array([9, 1, 3, 3, 5, 0], "float32"), np.array([3, 0, 7], "float32")
    s, v = te.placeholder(rows.shape, name="s"), te.placeholder(values.shape, name="v")

    def body(ins: Any, outs: Any) -> Any:
        ib = tir.ir_builder.create()
        sequence, wanted, out = [ib.buffer_ptr(b) for b in (*ins, *outs)]
        with ib.for_range(0, 3, "i") as i:
            out[i] = binary_search(ib, 1, 4, sequence, wanted[i], right, "int32")
        return ib.get()

    found = _run(te.extern([values.shape], [s, v], body, dtype="int32"), [s, v], [rows, values])
    np.testing.assert_array_equal(found, np.searchsorted(rows[1:5], values, "right" if right else "left"))  # fmt: skip


def test_random_blocks_are_a_sparse_matrix() -> None:
    matrix = random_bsr_matrix(32, 48, 4, 8, 0.3, "float32")
    blocks, columns, begins = matrix.data, matrix.indices, matrix.indptr
    assert blocks.shape == (len(columns), 4, 8)
    assert begins[0] == 0 and begins[-1] == len(columns) and (np.diff(begins) >= 0).all()
    assert abs(len(columns) * 32 - 0.3 * 32 * 48) <= 32
    dense = np.array(matrix.todense())
    assert dense.shape == (32, 48) and np.count_nonzero(dense) == blocks.size
    data = RNG.uniform(size=(3, 48)).astype("float32")
    arrays = [data, blocks, columns, begins]
    tensors = [te.placeholder(a.shape, str(a.dtype), f"p{i}") for i, a in enumerate(arrays)]
    found = _run(topi.nn.sparse_dense(*tensors), tensors, arrays)
    np.testing.assert_allclose(found, data @ dense.T, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="do not divide"):
        random_bsr_matrix(30, 48, 4, 8, 0.3, "float32")


def _names(mod: tvm.IRModule) -> list[str]:
    calls: list[str] = []
    relay.analysis.post_order_visit(
        mod["main"], lambda n: calls.append(n.op.name) if isinstance(n, relay.Call) else None
    )
    return calls


@pytest.fixture
def registered() -> Any:
    """Registers a rewrite for processors until the test ends."""
    done: list[Any] = []

    def register(generic: Any, function: Callable[..., Any]) -> None:
        generic.register(function, "cpu")
        done.append(generic)

    yield register
    for generic in done:
        del generic.dispatch_dict["cpu"]


def test_a_registered_legalization_is_asked_first(registered: Any) -> None:
    def doubled(attrs: Any, inputs: Any, types: Any) -> Any:
        return relay.add(inputs[0], inputs[0]) if types[-1].concrete_shape == (2, 3) else None

    registered(topi.erf_legalize, doubled)
    for shape, wanted in (((2, 3), "add"), ((3,), "erf")):
        x = relay.var("x", shape=shape)
        mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.erf(x)))
        with tvm.target.Target("llvm"):
            assert _names(relay.transform.Legalize()(mod)) == [wanted]
        assert _names(relay.transform.Legalize()(mod)) == ["erf"]  # of no target


def test_a_registered_layout_is_asked_first(registered: Any) -> None:
    def unchanged(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> Any:
        return relay.nn.relu(relay.nn.dense(*inputs))

    registered(topi.nn.dense_alter_layout, unchanged)
    x, w = relay.var("x", shape=(4, 8)), relay.var("w", shape=(16, 8))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.nn.dense(x, w)))
    with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3):
        assert _names(relay.transform.AlterOpLayout()(mod)) == ["nn.dense", "nn.relu"]
