"""Expressions and struct info: what they are made of, when they are equal, what they reject."""

from __future__ import annotations

import pytest

import tvm
from tvm import relax, tir
from tvm.error import TVMError
from tvm.ir import assert_structural_equal, structural_equal, structural_hash


def identity() -> relax.Function:
    """fn(x: Tensor(n, m)) { y = x; y } over variables of its own."""
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    x = relax.Var("x", relax.TensorStructInfo((n, m)))
    y = relax.Var("y", relax.TensorStructInfo((n, m)))
    block = relax.BindingBlock([relax.VarBinding(y, x)])
    return relax.Function([x], relax.SeqExpr([block], y), y.struct_info)


def test_functions_over_other_symbolic_variables_are_equal() -> None:
    a, b = identity(), identity()
    assert_structural_equal(a, b)
    assert structural_hash(a) == structural_hash(b)
    assert a.struct_info == b.struct_info


def test_json_keeps_functions() -> None:
    func = identity()
    assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(func)), func)


def test_dimensions_are_compared_by_value() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    assert relax.TensorStructInfo((n, 2)) == relax.TensorStructInfo((n, 2))
    assert relax.TensorStructInfo((n, 2)) != relax.TensorStructInfo((m, 2))
    assert not structural_equal(
        relax.TensorStructInfo((n, m)), relax.TensorStructInfo((n, n)), True
    )


def test_struct_info_of_expressions_is_known_when_they_are_made() -> None:
    n = tir.Var("n", "int64")
    pair = relax.Tuple([relax.const(1), relax.ShapeExpr((n, 3))])
    assert pair.struct_info.fields[0] == relax.TensorStructInfo((), "int32")
    assert pair[1].struct_info == relax.ShapeStructInfo((n, 3))
    assert relax.TupleGetItem(pair, 1).struct_info == relax.ShapeStructInfo((n, 3))
    assert relax.PrimValue(n + 1).struct_info == relax.PrimStructInfo(value=n + 1)
    assert relax.Tuple([relax.Var("x")]).struct_info_ is None


def test_shapes_reject_dimensions_of_other_types() -> None:
    with pytest.raises(tvm.TVMError, match="can only have dtype of int64"):
        relax.ShapeExpr([tir.Var("n", "int32"), 3])
    with pytest.raises(ValueError, match="one of shape and ndim"):
        relax.TensorStructInfo((1, 2), ndim=2)
    with pytest.raises(ValueError, match="requires a function"):
        relax.Call(relax.Var("f", relax.PrimStructInfo("int32")), [])


def test_base_check_tells_how_far_two_agree() -> None:
    n = tir.Var("n", "int64")
    check, result = relax.analysis.struct_info_base_check, relax.analysis.BaseCheckResult
    tensor = relax.TensorStructInfo((n, 3))
    assert check(relax.ObjectStructInfo(), tensor) is result.PASS
    assert check(relax.TensorStructInfo(ndim=2), tensor) is result.PASS
    assert check(tensor, relax.TensorStructInfo(ndim=2)) is result.FAIL_L2
    assert check(tensor, relax.TensorStructInfo(dtype="float32")) is result.FAIL_L1
    assert check(tensor, relax.TensorStructInfo((n, 4))) is result.FAIL_L0
    assert relax.TensorStructInfo((n * 2,)).is_base_of(relax.TensorStructInfo((n + n,)))


def test_calls_bind_symbolic_variables_of_the_callee() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    info = relax.FuncStructInfo(
        [relax.TensorStructInfo((n,)), relax.ShapeStructInfo((m,))],
        relax.TensorStructInfo((n + m,)),
    )
    x = relax.Var("x", relax.TensorStructInfo((5,)))
    call = relax.Call(relax.Var("f", info), [x, relax.ShapeExpr((3,))])
    derived = relax.analysis.derive_call_ret_struct_info(info, call, None)
    assert derived == relax.TensorStructInfo((8,))
    with pytest.raises(tvm.TVMError, match="requires 2 arguments, got 1"):
        relax.analysis.derive_call_ret_struct_info(info, relax.Call(call.op, [x]), None)


def test_common_struct_info_forgets_what_differs() -> None:
    lca = relax.analysis.struct_info_lca
    a, b = relax.TensorStructInfo((1, 2)), relax.TensorStructInfo((1, 3), "float16")
    assert lca(a, b) == relax.TensorStructInfo(None, "", ndim=2)
    assert lca(a, relax.ShapeStructInfo((1,))) == relax.ObjectStructInfo()
    pure = relax.FuncStructInfo([a], a)
    assert lca(pure, relax.FuncStructInfo([a], a, purity=False)).purity is False


def test_struct_info_leaves_the_scope_of_its_variables() -> None:
    n, m = tir.Var("n", "int64"), tir.Var("m", "int64")
    info = relax.TensorStructInfo((n, m + 1))
    erase = relax.analysis.erase_to_well_defined
    assert erase(info, {n: n}) == relax.TensorStructInfo(ndim=2)
    assert erase(info, {n: n, m: n + 1}) == relax.TensorStructInfo((n, n + 2))
    assert list(relax.analysis.definable_tir_vars_in_struct_info(info)) == [n]


def test_slices_require_a_begin_and_an_end_for_each_axis() -> None:
    x = relax.Var("x", relax.TensorStructInfo((8, 9), "float32"))
    for begin, end, strides in (([], [9], None), ([0], [], None), ([0], [9], [])):
        with pytest.raises(TVMError, match="for each of its axes"):
            relax.op.strided_slice(x, [1], begin, end, strides)


def test_resizing_requires_a_size_of_two_dimensions() -> None:
    x = relax.Var("x", relax.TensorStructInfo((2, 3, 8, 8), "float32"))
    size = relax.Var("size", relax.ShapeStructInfo())
    with pytest.raises(TVMError, match="size of two dimensions"):
        relax.BlockBuilder().normalize(relax.op.image.resize2d(x, size))


def test_arguments_of_gradients_are_a_map() -> None:
    x = relax.Var("x", relax.TensorStructInfo((2,), "float32"))
    call = relax.op.call_tir_with_grad(
        relax.GlobalVar("f"), (x,), x.struct_info, te_grad_name="g", te_grad_kwargs={"k": 1.0}
    )
    assert call.attrs.te_grad_kwargs.items()[0] == ("k", 1.0)
