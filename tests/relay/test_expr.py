"""Relay expressions: construction, operators, constants."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay


def test_operators_build_calls() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    for expr, name in (
        (x + y, "add"),
        (x - y, "subtract"),
        (x * y, "multiply"),
        (x / y, "divide"),
        (-x, "negative"),
        (x < y, "less"),
        (x > y, "greater"),
        (x <= y, "less_equal"),
        (x >= y, "greater_equal"),
        (x.astype("int32"), "cast"),
    ):
        assert isinstance(expr, relay.Call)
        assert expr.op.name == name


def test_operator_with_a_number_asks_for_a_constant() -> None:
    with pytest.raises(TypeError, match=r"relay\.const"):
        relay.var("x", shape=(2,)) + 1


def test_equality_is_identity() -> None:
    a, b = relay.const(1), relay.const(1)
    assert a == a
    assert a != b
    assert a.same_as(a)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, None, "int32"),
        (1.5, None, "float32"),
        (True, None, "bool"),
        ([1, 2], None, "int32"),
        (1, "int64", "int64"),
        (np.float64(2), None, "float64"),
        (np.arange(3), None, "int64"),
        (2.0, "float16", "float16"),
        (2.0, "bfloat16", "bfloat16"),
    ],
)
def test_const_dtype(value: object, dtype: str | None, expected: str) -> None:
    constant = relay.const(value, dtype)
    assert constant.data.dtype == expected
    assert constant.data.shape == np.shape(value)


def test_var_takes_shape_or_type() -> None:
    assert relay.var("x", shape=(1, 2)).type_annotation == relay.TensorType((1, 2), "float32")
    assert relay.var("x", "int32").type_annotation == relay.TensorType((), "int32")
    assert relay.var("x").type_annotation is None
    with pytest.raises(ValueError, match="not both"):
        relay.var("x", relay.TensorType((1,)), shape=(1,))


def test_tuple_is_a_sequence() -> None:
    x, y = relay.var("x"), relay.var("y")
    pair = relay.Tuple([x, y])
    assert len(pair) == 2
    assert pair[1] is y
    assert list(pair) == [x, y]
    with pytest.raises(TypeError, match="tuple"):
        pair.astype("int32")


def test_tuple_wrapper_unpacks() -> None:
    x = relay.var("x", shape=(4, 2))
    first, second = relay.split(x, 2, axis=0)
    assert isinstance(first, relay.TupleGetItem)
    assert (first.index, second.index) == (0, 1)
    with pytest.raises(IndexError, match="2 fields"):
        relay.split(x, 2, axis=0)[2]


def test_function_attributes_are_copied_on_write() -> None:
    x = relay.var("x", shape=(1,))
    func = relay.Function([x], x)
    marked = func.with_attr("Primitive", 1)
    assert marked.attrs["Primitive"] == 1
    assert "Primitive" not in func.attrs


def test_bind_removes_bound_parameters() -> None:
    x, y = relay.var("x", shape=(1,)), relay.var("y", shape=(1,))
    func = relay.bind(relay.Function([x, y], x + y), {y: relay.const(np.ones(1, "float32"))})
    assert list(func.params) == [x]
    assert relay.analysis.free_vars(func) == []


def test_from_expr_makes_main_of_free_variables() -> None:
    x, y = relay.var("x", shape=(1,)), relay.var("y", shape=(1,))
    mod = tvm.IRModule.from_expr(x + y)
    assert [p.name_hint for p in mod["main"].params] == ["x", "y"]


def test_structural_equality_maps_parameters_and_sees_sharing() -> None:
    def func(share: bool) -> relay.Function:
        x = relay.var("x", shape=(1,))
        left = relay.exp(x)
        return relay.Function([x], left + (left if share else relay.exp(x)))

    assert tvm.ir.structural_equal(func(True), func(True))
    assert not tvm.ir.structural_equal(func(True), func(False))
    assert tvm.ir.structural_hash(func(True)) == tvm.ir.structural_hash(func(True))


def test_structural_equality_takes_equal_constants_for_one() -> None:
    x, once = relay.var("x"), relay.const(1.0)
    shared, apart = (x + once) * once, (x + once) * relay.const(1.0)
    assert tvm.ir.structural_equal(shared, apart)
    assert not tvm.ir.structural_equal(shared, (x + once) * relay.const(2.0))


def test_structural_equality_binds_type_parameters_anew() -> None:
    text = "def @main(%x: int32) { let %f = fn [A](%a: A, %k: fn(A) -> A) -> A { %k(%a) }; %x }"
    mod = relay.parse(text)  # the variable is annotated with the parameters of the function
    again = relay.parse(mod.astext())  # here, with its own
    tvm.ir.assert_structural_equal(mod["main"], again["main"])
    assert tvm.ir.structural_hash(mod["main"]) == tvm.ir.structural_hash(again["main"])


def test_json_round_trip() -> None:
    x = relay.var("x", shape=(1, 4))
    func = relay.Function([x], relay.nn.relu(x + relay.const(1.0)))
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    back = tvm.ir.load_json(tvm.ir.save_json(mod))
    assert tvm.ir.structural_equal(mod["main"], back["main"])


def test_scope_builder_builds_lets_and_branches() -> None:
    sb = relay.ScopeBuilder()
    cond, x = relay.var("cond", "bool"), relay.var("x", "float32")
    with sb.if_scope(cond):
        sb.ret(sb.let("one", relay.const(1.0)))
    with sb.else_scope():
        sb.ret(x)
    func = relay.Function([cond, x], sb.get())
    assert isinstance(func.body, relay.If)
    assert isinstance(func.body.true_branch, relay.Let)
    mod = relay.transform.InferType()(tvm.IRModule.from_expr(func))
    assert mod["main"].ret_type == relay.TensorType((), "float32")


def test_module_of_a_tuple_of_results() -> None:
    x = relay.var("x", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.split(x, 2))
    assert isinstance(relay.testing.run_infer_type(relay.split(x, 2)).checked_type, relay.TupleType)
    assert mod["main"].params == (x,)


def test_numbers_of_attributes_print_as_programs_write_them() -> None:
    x = relay.var("x", shape=(2, 3, 4))
    axes = relay.transpose(x, (0, 2, 1)).attrs.axes
    assert str(axes) == "[0, 2, 1]" and axes == (0, 2, 1)
