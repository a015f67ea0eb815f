"""Decorators that make expressions of arguments."""

from __future__ import annotations

from typing import Any

import pytest

from tvm import relax
from tvm.relax import Expr
from tvm.relax.utils import args_converter


def test_annotated_parameters_become_expressions() -> None:
    @args_converter.auto
    def build(x: Expr, n: int, *rest: Expr | None, **named: list[Expr]) -> tuple[Any, ...]:
        return x, n, rest, named

    x, n, rest, named = build(1, 2, "three", None, four=[5, (6, 7)])
    assert isinstance(x, relax.PrimValue) and n == 2
    assert isinstance(rest[0], relax.StringImm) and rest[1] is None
    assert isinstance(named["four"][1], relax.Tuple)


def test_named_parameters_become_lists() -> None:
    build = args_converter.to_list_expr("xs")(lambda xs: xs)
    assert [type(x) for x in build((1, "two"))] == [relax.PrimValue, relax.StringImm]
    assert build(None) is None
    with pytest.raises(TypeError, match="a list of expressions is required, got int"):
        build(1)
