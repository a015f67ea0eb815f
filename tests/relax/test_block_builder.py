"""Functions that are built binding by binding, and struct info of operators."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relax, te, tir, topi
from tvm.ir import assert_structural_equal
from tvm.runtime import ShapeTuple


def test_emitted_expressions_are_in_normal_form() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 3)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.add(relax.op.exp(x), x))
            gv = bb.emit_output(lv)
        bb.emit_func_output(gv)
    func = bb.finalize()["main"]
    (block,) = func.body.blocks
    first, second, last = block.bindings
    assert isinstance(block, relax.DataflowBlock)
    assert second.value.args[0] is first.var and last.value is second.var
    assert type(last.var) is relax.Var and type(first.var) is relax.DataflowVar
    assert func.ret_struct_info == relax.TensorStructInfo((n, 3))
    assert bb.lookup_binding(lv) is second.value


def test_equal_loop_programs_are_added_once() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n,)))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit_te(topi.add, x, x)
        z = bb.emit_te(topi.add, y, y)
        bb.emit_func_output(z)
    mod = bb.get()
    assert sorted(g.name_hint for g in mod.functions) == ["add", "main"]
    assert z.struct_info == relax.TensorStructInfo((n,))


def test_struct_info_leaves_out_what_match_cast_defines() -> None:
    m = tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo(ndim=1))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.match_cast(x, relax.TensorStructInfo((m,)))
        bb.emit_func_output(relax.op.add(y, y))
    assert bb.get()["main"].ret_struct_info == relax.TensorStructInfo(ndim=1)


def test_functions_without_output_are_rejected() -> None:
    bb = relax.BlockBuilder()
    with pytest.raises(RuntimeError, match="must be called"), bb.function("main", []):
        pass


A, B = (2, 3, 4), ("n", 3)
CASES = [
    (lambda x: relax.op.permute_dims(x), (4, 3, 2)),
    (lambda x: relax.op.reshape(x, (4, -1)), (4, 6)),
    (lambda x: relax.op.sum(x, axis=[0, -1]), (3,)),
    (lambda x: relax.op.mean(x, axis=1, keepdims=True), (2, 1, 4)),
    (lambda x: relax.op.concat([x, x], axis=2), (2, 3, 8)),
    (lambda x: relax.op.expand_dims(x, [0, 4]), (1, 2, 3, 4, 1)),
    (lambda x: relax.op.strided_slice(x, [2], [3], [0], [-1]), (2, 3, 3)),
    (lambda x: relax.op.matmul(x, relax.op.permute_dims(x, [0, 2, 1])), (2, 3, 3)),
    (lambda x: relax.op.nn.pad(x, [1, 1, 0, 0, 0, 2]), (4, 3, 6)),
    (lambda x: relax.op.take(x, relax.const([0, 1], "int64"), axis=1), (2, 2, 4)),
    (lambda x: relax.op.repeat(x, 2, axis=0), (4, 3, 4)),
    (lambda x: relax.op.tile(x, (2, 1)), (2, 6, 4)),
    (lambda x: relax.op.cumsum(x), (24,)),
    (lambda x: relax.op.nn.max_pool1d(x, 2, 2, layout="NCW"), (2, 3, 2)),
]


@pytest.mark.parametrize("index", range(len(CASES)))
def test_operators_infer_shapes(index: int) -> None:
    build, shape = CASES[index]
    x = relax.Var("x", relax.TensorStructInfo(A))
    bb = relax.BlockBuilder()
    with bb.function("main", [x]):
        y = bb.emit(build(x))
        bb.emit_func_output(y)
    assert_structural_equal(y.struct_info, relax.TensorStructInfo(shape))


def test_symbolic_shapes_go_through_operators() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, 3)))
    bb = relax.BlockBuilder()
    both = bb.normalize(relax.op.concat(relax.Tuple([x, x]), axis=0))
    assert both.struct_info == relax.TensorStructInfo((n + n, 3))
    flat = bb.normalize(relax.op.flatten(x))
    assert flat.struct_info == relax.TensorStructInfo((n * 3,))
    unknown = relax.Var("y", relax.TensorStructInfo(ndim=2))
    assert bb.normalize(relax.op.add(x, unknown)).struct_info == relax.TensorStructInfo(ndim=2)


def test_arguments_that_do_not_fit_are_rejected() -> None:
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((2, 3)))
    y = relax.Var("y", relax.TensorStructInfo((2, 4)))
    with pytest.raises(tvm.TVMError, match="relax.add requires shapes that broadcast"):
        bb.normalize(relax.op.add(x, y))
    with pytest.raises(tvm.TVMError, match="relax.reshape requires a shape of 6 elements"):
        bb.normalize(relax.op.reshape(x, (5,)))
    with pytest.raises(TypeError, match="requires a float dtype"):
        bb.normalize(relax.op.exp(relax.Var("i", relax.TensorStructInfo((2,), "int32"))))


def test_windows_of_symbolic_images_have_what_strides_divide_outside() -> None:
    n, k = tir.Var("n", "int64"), tir.Var("k", "int64")
    x = relax.Var("x", relax.TensorStructInfo((1, 2, n)))
    w = relax.Var("w", relax.TensorStructInfo((2, 2, k)))
    pool = relax.op.nn.max_pool1d(x, 3, strides=2, padding=1)
    conv = relax.op.nn.conv1d(x, w, strides=2, padding=1, dilation=2)
    found = [relax.BlockBuilder().normalize(call).struct_info.shape[2] for call in (pool, conv)]
    tvm.ir.assert_structural_equal(found[0], tir.floordiv(n - 1, 2) + 1)
    tvm.ir.assert_structural_equal(found[1], tir.floordiv(n + 3, 2) + 1 - k)


def test_functions_of_tensors_may_use_variables_of_the_program() -> None:
    n = tir.Var("n", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n * 2, 4), "float32"))
    s = relax.Var("s", relax.ShapeStructInfo([n]))
    builder = relax.BlockBuilder()
    with builder.function("main", [x, s]):
        scaled = builder.emit_te(
            lambda a: te.compute((n + 1, 4), lambda i, j: a[i, j] * n.astype("float32")), x
        )
        builder.emit_func_output(scaled)
    machine = relax.VirtualMachine(relax.build(builder.get(), "llvm"), tvm.cpu())
    result = machine["main"](tvm.nd.array(np.ones((6, 4), "float32")), ShapeTuple([3])).numpy()
    np.testing.assert_array_equal(result, np.full((4, 4), 3, "float32"))


def test_extents_of_results_are_no_arguments_of_loop_programs() -> None:
    m = tir.Var("m", "int64")
    v = relax.Var("v", relax.TensorStructInfo((), "int32"))
    legal = relax.transform.LegalizeOps()
    builder = relax.BlockBuilder()
    with builder.function("main", [relax.Var("s", relax.ShapeStructInfo([m])), v]):
        builder.emit_func_output(builder.emit(relax.op.full((m, 2), v)))
    (binding,) = legal(builder.get())["main"].body.blocks[0].bindings
    assert len(binding.value.args) == 2
