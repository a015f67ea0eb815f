"""Reshapes whose extents only the run knows: runs of axes of equal product."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import te, tir, topi
from tvm.arith import Analyzer
from tvm.tir.stmt_functor import post_order_visit

N, M = tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32")
CASES = {
    "merged around open axes": ((1, N, 4, 3, M), (N, 12, M), 0),
    "split before an open axis": ((N, 12, M), (N, 4, 3, M), 0),
    "an open axis merged": ((2, N, 4), (2, N * 4), 1),
    "units come and go": ((N, 1, M, 1), (1, N, M), 0),
    "all in one": ((N, M), (N * M,), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_axes_are_mapped_in_runs(name: str) -> None:
    shape, wanted, most = CASES[name]
    a = te.placeholder(shape, name="a")
    out = topi.reshape(a, wanted)
    divided: dict[str, None] = {}

    def visit(node: tir.Node) -> None:
        if isinstance(node, (tir.FloorDiv, tir.FloorMod)):
            divided[str(node.b)] = None

    post_order_visit(out.op.body[0], visit)
    assert len([d for d in divided if not d.isdigit()]) <= most

    func = tvm.build(te.create_schedule(out.op), [a, out], "llvm")
    given, expected = [[_extent(d) for d in dims] for dims in (shape, wanted)]
    data = np.arange(np.prod(given), dtype="float32").reshape(given)
    found = tvm.nd.empty(expected)
    func(tvm.nd.array(data), found)
    np.testing.assert_array_equal(found.numpy(), data.reshape(expected))


def _extent(dim: int | tir.PrimExpr) -> int:
    known = tir.stmt_functor.substitute(tir.convert(dim), {N: tir.const(5), M: tir.const(7)})
    return int(Analyzer().simplify(known))
