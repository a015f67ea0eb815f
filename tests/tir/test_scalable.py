"""Vectors of ``vscale()`` times a constant number of lanes."""

import numpy as np
import pytest

import tvm
from tvm import tir
from tvm.error import LoweringError, ScheduleError
from tvm.script import tir as T
from tvm.tir.interp import interpret

SVE = "llvm -mtriple=aarch64-linux-gnu -mattr=+sve"


@T.prim_func
def scaled(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    B[0 : T.vscale() * 4] = A[T.Ramp(n, 2, T.vscale() * 4)] * T.Broadcast(
        T.float32(2), T.vscale() * 4
    )


@T.prim_func
def masked(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    B.vstore(
        [T.Ramp(0, 1, 4 * T.vscale())],
        A.vload(
            [T.Ramp(0, 1, T.vscale() * 4)],
            predicate=T.get_active_lane_mask("uint1xvscalex4", 0, n),
        ),
        predicate=T.get_active_lane_mask("uint1xvscalex4", 0, n),
    )


@pytest.mark.parametrize("lanes", [tir.vscale() * 4, 4 * tir.vscale(), 2 * tir.vscale() * 2])
def test_multiples_of_vscale_are_lanes(lanes: tir.PrimExpr) -> None:
    x = tir.Var("x", "int32")
    ramp, splat = tir.Ramp(x, 1, lanes), tir.Broadcast(x, lanes)
    assert ramp.dtype == splat.dtype == "int32xvscalex4"
    tvm.ir.assert_structural_equal(ramp, tir.Ramp(x, 1, tir.vscale() * 4))
    assert (ramp < splat).dtype == "uint1xvscalex4"


def test_lanes_of_another_length_are_another_vector() -> None:
    x = tir.Var("x", "int32")
    assert not tvm.ir.structural_equal(tir.Ramp(x, 1, tir.vscale() * 4), tir.Ramp(x, 1, 4))
    assert not tvm.ir.structural_equal(
        tir.Ramp(x, 1, tir.vscale() * 4), tir.Ramp(x, 1, tir.vscale() * 8)
    )


def test_other_expressions_are_no_lanes() -> None:
    x = tir.Var("x", "int32")
    with pytest.raises(TypeError, match=r"vscale\(\) times a constant, got"):
        tir.Ramp(x, 1, x * 4)


def test_scalars_beside_scalable_vectors_are_broadcast() -> None:
    x = tir.Var("x", "int32")
    found = tir.Ramp(0, 1, tir.vscale() * 4) + x
    tvm.ir.assert_structural_equal(found.b, tir.Broadcast(x, tir.vscale() * 4))


@pytest.mark.parametrize("func", [scaled, masked])
def test_scalable_vectors_survive_text_and_json(func: tir.PrimFunc) -> None:
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(func)), func)


def test_the_interpreter_has_the_shortest_vectors() -> None:
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    interpret(scaled, a, b, 1)
    np.testing.assert_array_equal(b[:5], [2, 6, 10, 14, 0])
    interpret(masked, a, b, 3)
    np.testing.assert_array_equal(b[:5], [0, 1, 2, 14, 0])


def test_scalable_vectors_become_those_of_sve() -> None:
    text = tvm.build(scaled, target=SVE).get_source()
    assert "@llvm.masked.gather.nxv4f32" in text
    assert "store <vscale x 4 x float>" in text
    text = tvm.build(masked, target=SVE).get_source()
    assert "@llvm.get.active.lane.mask.nxv4i1" in text
    assert "@llvm.masked.store.nxv4f32" in text
    assert "whilelo" in tvm.build(masked, target=SVE).get_source("asm")


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("llvm -mtriple=aarch64-linux-gnu", "int32xvscalex4 requires scalable vectors"),
        ("c", "target c has no scalable vectors"),
    ],
)
def test_targets_without_scalable_vectors_reject_them(target: str, what: str) -> None:
    with pytest.raises(LoweringError, match=what):
        tvm.build(scaled, target=target)


# ---- loops of scalable extent


@T.prim_func
def bounded(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    for i in T.vectorized(T.vscale() * 4):
        if i + 2 < n:
            B[i + 2] = A[i + 2] + T.float32(1)


def test_loops_of_scalable_extent_become_scalable_vectors() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32")):
        for i in T.vectorized(T.vscale() * 4):
            B[i] = T.Cast("int32", A[i * 2 + 1])

    @T.prim_func
    def after(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int32")):
        B[T.Ramp(0, 1, T.vscale() * 4)] = T.Cast("int32xvscalex4", A[T.Ramp(1, 2, T.vscale() * 4)])

    assert_vectorized(before, after)
    assert "fcvtzs" in tvm.build(before, target=SVE).get_source("asm")


def assert_vectorized(before: tir.PrimFunc, after: tir.PrimFunc) -> None:
    found = tir.transform.VectorizeLoop()(tvm.IRModule({"main": before}))["main"]
    tvm.ir.assert_structural_equal(found.body, after.body, map_free_vars=True)


def test_bounds_of_scalable_loops_become_active_lanes() -> None:
    @T.prim_func
    def after(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
        B.vstore(
            [T.Ramp(2, 1, T.vscale() * 4)],
            A.vload(
                [T.Ramp(2, 1, T.vscale() * 4)],
                predicate=T.get_active_lane_mask("uint1xvscalex4", 2, n),
            )
            + T.Broadcast(T.float32(1), T.vscale() * 4),
            predicate=T.get_active_lane_mask("uint1xvscalex4", 2, n),
        )

    assert_vectorized(bounded, after)
    assert "whilelo" in tvm.build(bounded, target=SVE).get_source("asm")
    a, b = np.arange(64, dtype="float32"), np.zeros(64, "float32")
    interpret(bounded, a, b, 5)
    np.testing.assert_array_equal(b[:6], [0, 0, 3, 4, 5, 0])


def test_other_conditions_leave_the_scalable_loop() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), n: T.int32):
        for i in T.vectorized(T.vscale() * 4):
            if i >= n:
                A[i] = T.float32(1)

    found = tir.transform.VectorizeLoop()(tvm.IRModule({"main": before}))["main"]
    assert found.body.kind == tir.ForKind.SERIAL


def test_scalable_vectors_of_vectors_are_rejected() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        for i in T.vectorized(T.vscale() * 4):
            A[i * 4 : i * 4 + 4] = T.Broadcast(T.float32(1), 4)

    with pytest.raises(ScheduleError, match="scalable vectors from existing vectors"):
        tir.transform.VectorizeLoop()(tvm.IRModule({"main": before}))


@pytest.mark.parametrize("predicated", [True, False])
def test_predication_is_an_option_of_any_vector(predicated: bool) -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), n: T.int32):
        for i in T.vectorized(4):
            if i < n:
                A[i] = T.float32(1)

    with tvm.transform.PassContext(config={"tir.enable_buffer_level_predication": predicated}):
        found = tir.transform.VectorizeLoop()(tvm.IRModule({"main": before}))["main"]
    if not predicated:
        assert found.body.kind == tir.ForKind.SERIAL
        return
    assert found.body.predicate.op.name == "tir.get_active_lane_mask"
    for count in (-2, 0, 3, 9):
        a = tvm.nd.array(np.zeros(64, "float32"))
        tvm.build(found, target="llvm")(a, count)
        assert a.numpy().sum() == max(min(count, 4), 0)


def test_names_of_llvm_intrinsics_are_no_vectors() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32")):
        for i in T.vectorized(4):
            A[i] = T.call_llvm_pure_intrin("float32", "llvm.sqrt", T.uint32(1), A[i])

    @T.prim_func
    def after(A: T.Buffer((64,), "float32")):
        A[0:4] = T.call_llvm_pure_intrin("float32x4", "llvm.sqrt", T.uint32(1), A[0:4])

    assert_vectorized(before, after)


def test_stores_widen_numbers() -> None:
    @T.prim_func
    def before(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "int64"), n: T.int32):
        A[0] = n
        A[1] = n < 3
        B[0] = n

    values = [store.value for store in before.body.seq]
    assert [type(value) for value in values] == [tir.Cast] * 3
    assert [value.dtype for value in values] == ["float32", "float32", "int64"]
