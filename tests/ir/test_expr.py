"""Expressions that the loop level shares, by their classic paths."""

import tvm
from tvm.ir.expr import IntImm, Range


def test_loop_level_nodes_have_names_in_ir() -> None:
    assert Range is tvm.ir.Range is type(tvm.tir.Range(0, 4))
    assert IntImm is tvm.tir.IntImm
