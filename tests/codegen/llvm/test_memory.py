"""Loads and stores of every shape; allocations; constants; alignment."""

import numpy as np
import pytest

import tvm
from tvm import te, tir
from tvm.codegen.llvm.memory import known_factor
from tvm.tir import Broadcast, Ramp

from .helpers import flat_function, run

X = np.arange(64, dtype="float32")
A = tir.decl_buffer((64,), "float32", "A")
B = tir.decl_buffer((64,), "float32", "B")


def moved(index_in: object, index_out: object, **predicates: object) -> np.ndarray:
    """B after ``B[index_out] = A[index_in]``."""
    load = tir.BufferLoad(A, [index_in], predicates.get("load"))
    store = tir.BufferStore(B, load, [index_out], predicates.get("store"))
    func = tvm.build(flat_function(lambda a, b: store, A, B), target="llvm")
    return run(func, X, np.full(64, -1, "float32"))[1]


def expected(places: object, values: object) -> np.ndarray:
    result = np.full(64, -1, "float32")
    result[places] = values
    return result


@pytest.mark.parametrize("stride", [1, 2, 3, -1, -2])
def test_strided_load(stride: int) -> None:
    start = 5 if stride > 0 else 40
    index = start + stride * np.arange(16)
    result = moved(Ramp(start, stride, 16), Ramp(0, 1, 16))
    np.testing.assert_array_equal(result, expected(slice(0, 16), X[index]))


@pytest.mark.parametrize("stride", [1, 2, 3, -1])
def test_strided_store(stride: int) -> None:
    start = 3 if stride > 0 else 40
    result = moved(Ramp(0, 1, 16), Ramp(start, stride, 16))
    np.testing.assert_array_equal(result, expected(start + stride * np.arange(16), X[:16]))


def test_broadcast_index_loads_one_element() -> None:
    result = moved(Broadcast(tir.const(7), 16), Ramp(0, 1, 16))
    np.testing.assert_array_equal(result, expected(slice(0, 16), 7.0))


def test_gather_and_scatter_by_arbitrary_indices() -> None:
    ramp = Ramp(0, 1, 16)
    index = (ramp * Broadcast(tir.const(7), 16)) % Broadcast(tir.const(16), 16)
    places = np.arange(16) * 7 % 16
    np.testing.assert_array_equal(moved(index, ramp), expected(slice(0, 16), X[places]))
    np.testing.assert_array_equal(moved(ramp, index), expected(places, X[:16]))


def test_vectors_of_unsigned_indices_reach_beyond_the_signed_ones() -> None:
    table, places = tir.decl_buffer((256,), "int32", "T"), tir.decl_buffer((32,), "uint8", "P")
    out, ramp = tir.decl_buffer((32,), "int32", "O"), Ramp(0, 1, 32)
    load = tir.BufferLoad(table, [tir.BufferLoad(places, [ramp])])
    store = lambda t, p, o: tir.BufferStore(out, load, [ramp])  # noqa: E731
    func = tvm.build(flat_function(store, table, places, out), target="llvm")
    at = np.arange(255, 255 - 8 * 32, -8, "int64").astype("uint8")
    result = run(func, np.arange(256, dtype="int32"), at, np.zeros(32, "int32"))[2]
    np.testing.assert_array_equal(result, at)


def test_a_mask_reversed_with_its_vector() -> None:
    mask = Ramp(0, 1, 16) < Broadcast(tir.const(5), 16)
    result = moved(Ramp(4, -1, 16), Ramp(0, 1, 16), load=mask, store=mask)
    np.testing.assert_array_equal(result, expected(slice(0, 5), X[4::-1]))


@pytest.mark.parametrize("kind", ["int8", "int16"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_a_mask_of_one_lane_stores_one_narrowed_element(kind: str, lanes: int) -> None:
    wide, narrow = tir.decl_buffer((32,), "int32", "W"), tir.decl_buffer((32,), kind, "N")
    ramp = Ramp(0, 1, lanes)
    value = tir.Cast(f"{kind}x{lanes}", tir.BufferLoad(wide, [ramp]))
    mask = ramp < Broadcast(tir.const(1), lanes)
    store = lambda w, n: tir.BufferStore(narrow, value, [ramp], mask)  # noqa: E731
    func = tvm.build(flat_function(store, wide, narrow), target="llvm")
    result = run(func, np.arange(5, 37, dtype="int32"), np.full(32, -1, kind))[1]
    np.testing.assert_array_equal(result, [5] + [-1] * 31)


def test_masked_accesses() -> None:
    ramp = Ramp(0, 1, 16)
    mask = ramp < Broadcast(tir.const(5), 16)
    loaded = moved(ramp, ramp, load=mask)
    np.testing.assert_array_equal(
        loaded, expected(slice(0, 16), np.where(np.arange(16) < 5, X[:16], 0))
    )
    stored = moved(ramp, ramp, store=mask)
    np.testing.assert_array_equal(stored, expected(slice(0, 5), X[:5]))
    every_other = Ramp(0, 2, 16)
    np.testing.assert_array_equal(
        moved(every_other, ramp, load=mask),
        expected(slice(0, 16), np.where(np.arange(16) < 5, X[:32:2], 0)),
    )
    np.testing.assert_array_equal(
        moved(ramp, every_other, store=mask), expected(slice(0, 10, 2), X[:5])
    )


def test_vector_element_buffers() -> None:
    a, b = tir.decl_buffer((4,), "float32x4", "A"), tir.decl_buffer((4,), "float32x4", "B")
    i = tir.Var("i", "int32")
    body = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.BufferStore(b, a[3 - i], [i]))
    func = tvm.build(flat_function(lambda a, b: body, a, b), target="llvm")
    x, y = tvm.nd.empty((4,), "float32x4"), tvm.nd.empty((4,), "float32x4")
    x.copyfrom(X[:16].reshape(4, 4))
    func(x, y)
    np.testing.assert_array_equal(y.numpy().reshape(4, 4), X[:16].reshape(4, 4)[::-1])


@pytest.mark.parametrize("size", [8, 100_000])
def test_intermediate_memory_small_and_large(size: int) -> None:
    data = te.placeholder((size,), name="A")
    middle = te.compute((size,), lambda i: data[i] * 2.0, name="middle")
    out = te.compute((size,), lambda i: middle[size - 1 - i] + 1.0, name="out")
    func = tvm.build(te.create_schedule(out.op), [data, out], "llvm")
    x = np.random.rand(size).astype("float32")
    np.testing.assert_allclose(run(func, x, x * 0)[1], x[::-1] * 2 + 1, rtol=1e-6)


def test_constants_are_in_the_module() -> None:
    table = tvm.nd.array(np.arange(64, dtype="float32") ** 2)
    const = tir.decl_buffer((64,), "float32", "table")
    i = tir.Var("i", "int32")
    loop = tir.For(i, 0, 64, tir.ForKind.SERIAL, tir.BufferStore(B, const[63 - i], [i]))
    body = tir.AllocateConst(const.data, "float32", [64], table, loop)
    func = tvm.build(flat_function(lambda b: body, B), target="llvm")
    np.testing.assert_array_equal(run(func, X * 0)[0], table.numpy()[::-1])


def test_zero_dimensional_and_empty_tensors() -> None:
    data = te.placeholder((), name="A")
    out = te.compute((), lambda: data() * 3.0, name="out")
    func = tvm.build(te.create_schedule(out.op), [data, out], "llvm")
    assert run(func, np.array(2.0, "float32"), np.array(0.0, "float32"))[1] == 6.0
    empty = te.placeholder((0, 4), name="A")
    twice = te.compute((0, 4), lambda i, j: empty[i, j] * 2.0, name="out")
    func = tvm.build(te.create_schedule(twice.op), [empty, twice], "llvm")
    assert run(func, np.zeros((0, 4), "float32"), np.zeros((0, 4), "float32"))[1].shape == (0, 4)


def test_known_factor_of_indices() -> None:
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    assert known_factor(i * 16 + 8) == 8
    assert known_factor(i * 16 + j * 64) == 16
    assert known_factor(i * 16 + j) == 1
    assert known_factor(tir.const(0)) == 0


@pytest.mark.parametrize("lanes", [6, 8])
def test_lanes_beyond_the_limit_are_neither_read_nor_written(lanes: int) -> None:
    a, b = tir.decl_buffer((64,), "float32", "a"), tir.decl_buffer((64,), "float32", "b")
    count = tir.Var("count", "int32")
    zero = tir.const(0, "int32")
    mask = tir.Call(f"uint1x{lanes}", "tir.get_active_lane_mask", [zero, count])
    doubled = a.vload([0], f"float32x{lanes}", predicate=mask) * 2.0
    store = tir.BufferStore(b, doubled, [tir.Ramp(0, 1, lanes)], mask)
    func = tvm.build(tir.PrimFunc([a, b, count], store), target="llvm")
    x, out = np.arange(1, 65, dtype="float32"), tvm.nd.array(np.zeros(64, "float32"))
    func(tvm.nd.array(x), out, 5)
    np.testing.assert_array_equal(out.numpy(), np.where(np.arange(64) < 5, x * 2, 0))


def test_step_of_a_ramp_may_be_a_variable() -> None:
    a, b = tir.decl_buffer((64,), "float32", "a"), tir.decl_buffer((8,), "float32", "b")
    n = tir.Var("n", "int32")
    store = tir.BufferStore(b, tir.BufferLoad(a, [tir.Ramp(n, n, 8)]), [tir.Ramp(0, 1, 8)])
    func = tvm.build(tir.PrimFunc([a, b, n], store), target="llvm")
    x, out = np.arange(64, dtype="float32"), tvm.nd.array(np.zeros(8, "float32"))
    func(tvm.nd.array(x), out, 3)
    np.testing.assert_array_equal(out.numpy(), x[3::3][:8])
