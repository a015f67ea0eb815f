"""Reshapes between symbolic shapes give the elements that numpy's do, whatever the sizes."""

from __future__ import annotations

import pytest

from tvm import tir
from tvm.ir.expr import PrimExpr
from tvm.relay.op.new_shape import find_new_shape
from tvm.relay.op.shaping import infer_reshape
from tvm.relay.op.types import Dim, simplified
from tvm.tir.stmt_functor import substitute

N, S = tir.SizeVar("n", "int32"), tir.SizeVar("s", "int32")


def at(shape: tuple[Dim, ...], n: int, s: int) -> tuple[int, ...]:
    values = {N: tir.IntImm("int32", n), S: tir.IntImm("int32", s)}
    found = [substitute(d, values) if isinstance(d, PrimExpr) else d for d in shape]
    return tuple([int(simplified(dim)) for dim in found])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "target", "wanted"),
    [
        ((N, S, 8), (N, S, 2, 4), [0, 0, -4, 2, 4]),
        ((N, S, 8), (N * S, 8), [-1, 8]),
        ((N, S, 8), (N * S, 2, 4), [-1, 2, 4]),
        ((N, 12, S, 64), (N * 12, S, 64), [-3, 0, 0]),
        ((N * 12, S, S), (N, 12, S, S), [-4, -1, 12, 0, 0]),
        ((N, S, 2, 4), (N, S, 8), [0, -1, 8]),
        ((1, N), (N,), [-1]),
        ((N, 4, 1, 1), (N, 4), [0, 4]),
        ((N * S, 8), (N, S, 8), None),
        ((S, N), (N, S), None),
        ((6,), (2, 3), [2, 3]),
    ],
)
def test_numbers_say_the_shape(
    source: tuple[Dim, ...], target: tuple[Dim, ...], wanted: list[int] | None
) -> None:
    found = find_new_shape(source, target)
    assert (found is None) == (wanted is None)
    if found is not None:
        for n, s in ((1, 1), (3, 5)):
            assert infer_reshape(at(source, n, s), found) == at(target, n, s)
