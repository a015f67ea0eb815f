"""What patterns match and what they do not."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay
from tvm.relay.dataflow_pattern import (
    FunctionPattern,
    dominates,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from tvm.relay.op import OpPattern

x, y, z = (relay.var(name, shape=(4, 4)) for name in "xyz")


def test_leaves() -> None:
    one = relay.const(1.0)
    assert is_var().match(x) and is_var("x").match(x) and not is_var("y").match(x)
    assert is_constant().match(one) and not is_constant().match(x)
    assert is_expr(relay.const(1.0)).match(one) and not is_expr(relay.const(2.0)).match(one)
    assert is_op("add").match(tvm.ir.Op.get("add")) and not is_op("add").match(x)
    assert wildcard().match(x + y)


def test_calls_and_commutative_operators() -> None:
    assert is_op("add")(is_var("x"), is_var("y")).match(y + x)
    assert not is_op("subtract")(is_var("x"), is_var("y")).match(y - x)
    assert is_op("exp")(wildcard()).match(relay.exp(x))
    assert is_op("concatenate")(None).match(relay.concatenate([x, y], 0))
    assert (is_var("x") + is_var("y") * is_var("z")).match(relay.multiply(z, y) + x)


def test_one_pattern_is_one_expression() -> None:
    any_ = wildcard()
    assert (any_ + any_).match(x + x)
    assert not (any_ + any_).match(x + y)
    assert (wildcard() + wildcard()).match(x + y)


def test_alternatives_take_back_what_failed() -> None:
    a, b = wildcard(), wildcard()
    pattern = (is_op("exp")(a) + is_op("log")(b)) | (is_op("exp")(b) + is_op("tanh")(a))
    assert pattern.match(relay.exp(x) + relay.tanh(y))
    conv = is_op("nn.relu")(wildcard()).optional(lambda p: is_op("exp")(p))
    assert conv.match(relay.nn.relu(x)) and conv.match(relay.exp(relay.nn.relu(x)))


def test_division_is_associated_either_way() -> None:
    a, b, c = is_var("x"), is_var("y"), is_var("z")
    assert ((a * b) / c).match(x * (y / z))
    assert (a * (b / c)).match((x * y) / z)
    assert not ((a * b) / c).match(x * (z / y))


def test_tuples_conditions_lets_and_functions() -> None:
    pair = relay.Tuple([x, y])
    assert is_tuple([wildcard(), is_var("y")]).match(pair) and is_tuple(None).match(pair)
    assert not is_tuple([wildcard()]).match(pair)
    item = relay.TupleGetItem(pair, 1)
    assert is_tuple_get_item(is_tuple(None), 1).match(item) and is_tuple_get_item(wildcard()).match(
        item
    )
    assert not is_tuple_get_item(wildcard(), 0).match(item)
    c, v = relay.var("c", "bool"), relay.var("v")
    assert is_if(is_var("c"), is_var("x"), is_var("y")).match(relay.If(c, x, y))
    assert is_let(is_var("v"), is_var("x"), is_var("v")).match(relay.Let(v, x, v))
    f = relay.Function([x, y], x + y)
    assert FunctionPattern([wildcard(), wildcard()], wildcard() + wildcard()).match(f)
    assert FunctionPattern(None, wildcard() + wildcard()).match(f)
    assert not FunctionPattern([wildcard()], wildcard()).match(f)


def test_types_shapes_and_dtypes() -> None:
    assert has_shape((4, 4)).match(x) and not has_shape((4,)).match(x)
    assert has_dtype("float32").match(x) and not has_dtype("int8").match(x)
    assert has_type(relay.TensorType((4, 4))).match(x + y)
    assert is_op("add")(wildcard(), wildcard()).has_shape((4, 4)).match(x + y)
    assert is_op("add")(wildcard(), wildcard()).has_dtype("float32").match(x + y)


def test_attributes_of_calls_operators_and_functions() -> None:
    soft = relay.nn.softmax(x, axis=1)
    assert is_op("nn.softmax")(wildcard()).has_attr({"axis": 1}).match(soft)
    assert not is_op("nn.softmax")(wildcard()).has_attr({"axis": 0}).match(soft)
    assert not has_attr({"no": 0}).match(soft)
    elemwise = wildcard().has_attr({"TOpPattern": OpPattern.ELEMWISE})
    assert elemwise(wildcard()).match(relay.exp(x)) and not elemwise(wildcard()).match(soft)
    func = relay.Function([x], x).with_attr("Composite", "add")
    assert has_attr({"Composite": "add"}).match(func)
    conv = relay.nn.max_pool2d(relay.var("d", shape=(1, 1, 4, 4)), pool_size=(2, 2))
    assert is_op("nn.max_pool2d")(wildcard()).has_attr({"pool_size": [2, 2]}).match(conv)


def diamond() -> tvm.relay.dataflow_pattern.DFPattern:
    unary = wildcard().has_attr({"TOpPattern": OpPattern.ELEMWISE})(wildcard())
    parent = is_op("nn.dense")(wildcard(), wildcard())
    return dominates(parent, unary, is_op("add")(wildcard(), wildcard()))


def test_dominators() -> None:
    d = relay.nn.dense(x, y)
    assert diamond().match(relay.exp(relay.exp(d)) + relay.tanh(d))
    assert not diamond().match(relay.exp(d) + relay.tanh(relay.nn.dense(x, z)))
    assert not diamond().match(relay.exp(x) + relay.tanh(d))
    assert not diamond().match(relay.exp(x) + relay.tanh(x))
    assert not diamond().match(relay.exp(d + d) + relay.tanh(d))


def test_every_way_to_the_parent_is_looked_at() -> None:
    d = relay.nn.dense(x, y)
    assert diamond().match(relay.exp(d) + d)
    assert not diamond().match(relay.nn.dense(relay.log(d), y) + relay.exp(d))
    path = is_op("nn.bias_add")(wildcard(), wildcard())
    parent = is_op("nn.dense")(wildcard(), wildcard())
    biased = dominates(parent, path, is_op("exp")(wildcard()))
    assert biased.match(relay.exp(relay.nn.bias_add(d, relay.var("b"))))
    assert not biased.match(relay.exp(relay.nn.bias_add(relay.var("b"), relay.var("b"))))


def test_dominators_of_many_diamonds_take_linear_time() -> None:
    path = is_op("add")(wildcard(), wildcard()) | is_op("exp")(wildcard())
    pattern = dominates(is_op("nn.dense")(wildcard(), wildcard()), path, is_op("tanh")(wildcard()))
    e = relay.nn.dense(x, y)
    for _ in range(200):
        e = relay.exp(e)
        e = e + e
    assert pattern.match(relay.tanh(e))


def test_recursive_pattern() -> None:
    chain = wildcard()
    chain.redirect_to(is_op("exp")(chain) | is_var("x"))
    e = x
    for _ in range(50):
        e = relay.exp(e)
    assert chain.match(e) and not chain.match(relay.tanh(e))


def test_unknown_operator_is_an_error() -> None:
    with pytest.raises(tvm.error.OpNotImplemented, match=r"no operator is called 'nn\.relo'"):
        is_op("nn.relo")
