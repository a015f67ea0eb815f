from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.ir.transform import PassContext
from tvm.tir.stmt import SeqStmt
from tvm.tir.transform import InstrumentProfileIntrinsics

from .checks import apply
from .programs import function, loop, store

B = tir.decl_buffer((64,), name="B")


def nest() -> Any:
    def inner(i: tir.Var) -> Any:
        return loop(8, lambda j: store(B, i * 8 + j, 1.0), name="j")

    return loop(8, inner)


def marks(func: tir.PrimFunc, **config: Any) -> int:
    with PassContext(config={f"tir.{key}": value for key, value in config.items()}):
        text = str(apply(InstrumentProfileIntrinsics(), func))
    assert text.count("start_profile_intrinsic") == text.count("end_profile_intrinsic")
    return text.count("start_profile_intrinsic")


def test_the_function_and_loops_beside_each_other_are_marked() -> None:
    assert marks(function([B], nest())) == 1
    assert marks(function([B], SeqStmt([nest(), nest()]))) == 3


def test_options_choose_what_is_marked() -> None:
    func = function([B], SeqStmt([nest(), nest()]))
    assert marks(func, lwp_disable_func_prof=True) == 2
    assert marks(func, instr_siblings=False) == 3
    assert marks(func, instr_siblings=False, lwp_min_height=0) == 5
    assert marks(func, instr_siblings=False, lwp_min_height=0, lwp_max_depth=1) == 3
    assert marks(func, lwp_min_height=2) == 1
