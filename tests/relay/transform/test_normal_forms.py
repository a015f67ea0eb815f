"""Names for all values, and the types of those names."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing import run_infer_type, run_opt_pass


def unknown(name: str) -> relay.Var:
    return relay.Var(name, relay.IncompleteType())


def test_values_and_constants_are_named_in_the_order_of_evaluation() -> None:
    one, two, three = relay.const(1), relay.const(2), relay.const(3)
    named = run_opt_pass(one + two * three, transform.ToANormalForm())
    a, b, c, d, e = [unknown(name) for name in "abcde"]
    wanted: relay.Expr = e
    bindings = [(e, a + d), (d, b * c), (c, three), (b, two), (a, one)]
    for variable, value in bindings:
        wanted = relay.Let(variable, value, wanted)
    tvm.ir.assert_structural_equal(named, run_infer_type(wanted))


def test_branches_have_names_of_their_own() -> None:
    cond = relay.const(True)
    named = run_opt_pass(relay.If(cond, relay.const(2), relay.const(3)), transform.ToANormalForm())
    a, b, c, d = [unknown(name) for name in "abcd"]
    then, other = relay.Let(a, relay.const(2), a), relay.Let(b, relay.const(3), b)
    wanted = relay.Let(c, cond, relay.Let(d, relay.If(c, then, other), d))
    tvm.ir.assert_structural_equal(named, run_infer_type(wanted))


def test_constants_stay_where_results_alone_are_named() -> None:
    x = relay.var("x", shape=(2,))
    func = relay.Function([x], relay.exp(x) + relay.const(1.0))
    assert "= 1f" not in str(run_opt_pass(func, transform.NameResults()))
    assert "= 1f" in str(run_opt_pass(func, transform.ToANormalForm()))


def test_variables_of_lets_get_their_types_written() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y")
    func = relay.Function([x], relay.Let(y, relay.exp(x), y), relay.TensorType((2,), "float32"))
    assert run_infer_type(func).body.var.type_annotation == relay.TensorType((2,), "float32")


def test_numbers_and_literals_are_equal_attributes() -> None:
    x = relay.var("x", shape=(2,))
    plain = relay.Function([x], x).with_attr("Primitive", 1)
    literal = relay.Function([x], x).with_attr("Primitive", tvm.tir.IntImm("int32", 1))
    tvm.ir.assert_structural_equal(plain, literal)
    assert tvm.ir.structural_hash(plain) == tvm.ir.structural_hash(literal)
    other = literal.with_attr("Primitive", tvm.tir.IntImm("int32", 0))
    assert not tvm.ir.structural_equal(plain, other)


def test_modules_make_functions_of_expressions() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule()
    mod["same"] = relay.Function([x], x)
    mod["main"] = mod.get_global_var("same")
    assert mod["main"] is mod["same"]
    mod["sum"] = relay.const(1) + relay.const(2)
    assert isinstance(mod["sum"], relay.Function)
    with pytest.raises(tvm.TVMError, match="requires a function for main, got int"):
        mod["main"] = 1


def test_kinds_are_checked() -> None:
    shape = relay.TypeVar("s", relay.TypeKind.ShapeVar)
    with pytest.raises(tvm.error.DiagnosticError, match="TupleType requires types as its parts"):
        relay.analysis.check_kind(relay.TupleType([shape]))


def test_kernels_are_those_after_fusion() -> None:
    mod, _ = relay.testing.synthetic.get_workload()
    found = relay.analysis.extract_fused_functions(mod)
    assert found
    assert all(int(f.attrs["Primitive"]) == 1 for f in found.values())


def test_fast_math_is_part_of_the_highest_level() -> None:
    x = relay.var("x", shape=(2,))
    with tvm.transform.PassContext(opt_level=4):
        mod, _ = relay.optimize(tvm.IRModule.from_expr(relay.Function([x], relay.tanh(x))), "llvm")
    assert "fast_tanh" in str(mod)


def test_types_are_written_in_functions_inferred_for_others() -> None:
    mod = relay.parse(
        """
        def @main(%x: float32) { @callee(%x) }
        def @callee(%x: float32) { let %y = exp(%x); %y }
        """
    )
    for func in (mod["callee"], relay.transform.InferType()(mod)["callee"]):
        assert func.body.var.type_annotation == relay.scalar_type("float32")
