"""Languages have no masked vectors: programs' own predicates are rejected, conditions are not."""

from __future__ import annotations

import pytest

import tvm
from tests.errors.messages import rejection
from tvm import te, tir
from tvm.error import TVMError
from tvm.script import tir as T
from tvm.tir.transform import BindTarget
from tvm.tir.transform.verify_predicates import VerifyPredicates


@T.prim_func
def stores(B: T.Buffer((8,), "float32")) -> None:
    B.vstore([T.Ramp(0, 2, 4)], T.Broadcast(1.0, 4), predicate=T.Broadcast(T.bool(True), 4))


@T.prim_func
def loads(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")) -> None:
    B[0:4] = A.vload([T.Ramp(4, 1, 4)], predicate=T.Ramp(0, 1, 4) < T.Broadcast(3, 4))


@pytest.mark.parametrize("target", ["c", "cuda", "opencl"])
@pytest.mark.parametrize(("access", "func"), [("store", stores), ("load", loads)])
def test_languages_reject_predicates_of_programs(
    access: str, func: tir.PrimFunc, target: str
) -> None:
    mod = BindTarget(tvm.target.Target(target))(tvm.IRModule.from_expr(func))
    text = rejection(lambda: VerifyPredicates()(mod), TVMError)
    assert f"a {access} with a predicate requires a target with masked vectors" in text
    assert f"Predicated buffer {access} is not supported." in text


def test_llvm_takes_predicates_of_programs() -> None:
    mod = BindTarget(tvm.target.Target("llvm"))(tvm.IRModule.from_expr(loads))
    assert tvm.ir.structural_equal(VerifyPredicates()(mod), mod)


def test_c_branches_for_conditions_of_vectorized_loops() -> None:
    A = te.placeholder((13,), name="A")
    B = te.compute((13,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B.op)
    _, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].vectorize(inner)
    lowered = tvm.lower(s, [A, B], simple_mode=True)
    assert "predicate=" in str(lowered)
    assert "< 13) {" in tvm.build(lowered, target="c").get_source()
