from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tvm import nd, tir
from tvm.tir.stmt import Stmt
from tvm.tir.transform import InstrumentBoundCheckers

from .checks import apply, assert_same_results
from .programs import VECTORIZED, function, loop, store
from .test_make_packed_api import compiled

A = tir.decl_buffer((16,), name="A")
B = tir.decl_buffer((16,), name="B")


def shifted(by: int, kind: Any = 0) -> tir.PrimFunc:
    return function([A, B], loop(16, lambda i: store(B, i, A[i + by]), kind))


def run_checked(func: tir.PrimFunc) -> Any:
    f = compiled(func, **{"tir.instrument_bound_checkers": True})
    result = nd.array(np.zeros(16, "float32"))
    f(nd.array(np.arange(16, dtype="float32")), result)
    return result.numpy()


def test_accesses_inside_pass() -> None:
    np.testing.assert_array_equal(run_checked(shifted(0)), np.arange(16))


@pytest.mark.parametrize("kind", [0, VECTORIZED])
@pytest.mark.parametrize("by", [-1, 3])
def test_accesses_outside_are_reported(by: int, kind: Any) -> None:
    with pytest.raises(
        Exception, match="buffer A needs an index from 0 to below 16, got"
    ) as raised:
        run_checked(shifted(by, kind))
    assert str(-1 if by < 0 else 16 if kind == 0 else 18) in str(raised.value)


def test_guarded_accesses_are_checked_under_their_guard() -> None:
    def body(i: tir.Var) -> Stmt:
        return store(B, i, tir.if_then_else(i >= 1, A[i - 1], tir.const(0.0, "float32")))

    before = function([A, B], loop(16, body))
    assert_same_results(before, apply(InstrumentBoundCheckers(), before), 16, 16)
    assert run_checked(before)[0] == 0
