"""Expressions that the loop level shares, by their classic paths."""

import tvm
from tvm import relax, tir
from tvm.ir import assert_structural_equal
from tvm.ir.expr import IntImm, Range


def test_loop_level_nodes_have_names_in_ir() -> None:
    assert Range is tvm.ir.Range is type(tvm.tir.Range(0, 4))
    assert IntImm is tvm.tir.IntImm


def test_struct_info_of_loop_programs_is_inferred() -> None:
    shapes = [relax.TensorStructInfo([4], "float32"), relax.TensorStructInfo([8], "int32")]
    a, b = [tir.decl_buffer(info.shape.values, info.dtype) for info in shapes]
    func = tir.PrimFunc([a, b], tir.BufferStore(b, 1, [0]))
    expected = relax.FuncStructInfo(shapes, relax.TupleStructInfo([]), purity=False)
    assert_structural_equal(func.struct_info, expected)
    assert func.struct_info_ is None
