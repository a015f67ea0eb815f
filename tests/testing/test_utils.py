"""What programs assert of expressions."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.testing import assert_prim_expr_equal


def test_equal_expressions() -> None:
    x = tir.Var("x", "int32")
    assert_prim_expr_equal(x * 2 + x, x * 3)
    assert_prim_expr_equal(*[tir.call_extern("int32", "count", x + 1) for _ in range(2)])
    with pytest.raises(ValueError, match="are not equal"):
        assert_prim_expr_equal(x * 2, x * 3)
    with pytest.raises(ValueError, match="are not equal"):
        assert_prim_expr_equal(*[tir.call_extern("int32", "count", x + i) for i in range(2)])
