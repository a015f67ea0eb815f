"""Narrow floats where they pay."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tvm
from tests.relay.op.test_all_ops import CASES
from tvm import relay
from tvm.ir import register_op_attr
from tvm.relay.testing.temp_op_attr import TempOpAttr
from tvm.relay.transform import ToMixedPrecision
from tvm.relay.traverse import post_order

from .common import assert_transforms, assert_unchanged, run

KEEP = "relay.ToMixedPrecision.keep_orig_output_dtype"


def params() -> tuple[relay.Var, relay.Var]:
    return relay.var("x", shape=(4, 8)), relay.var("w", shape=(8, 8))


def narrow(e: relay.Expr, dtype: str = "float16") -> relay.Expr:
    return relay.cast(e, dtype)


def layer(x: relay.Expr, w: relay.Expr, dtype: str = "float16") -> relay.Expr:
    return narrow(relay.nn.dense(narrow(x, dtype), narrow(w, dtype), out_dtype="float32"), dtype)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_gain_and_others_follow(dtype: str) -> None:
    x, w = params()
    before = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    x, w = params()
    after = relay.Function([x, w], relay.nn.relu(layer(x, w, dtype)))
    assert_transforms(before, after, ToMixedPrecision(dtype))


def test_parameters_follow_values() -> None:
    x, w = params()
    b = relay.var("b", shape=(8,))
    before = relay.Function([x, w, b], relay.nn.dense(x, w) + b)
    x, w = params()
    b = relay.var("b", shape=(8,))
    assert_transforms(
        before, relay.Function([x, w, b], layer(x, w) + narrow(b)), ToMixedPrecision()
    )


def test_what_a_closure_shares_with_its_surroundings_stays_one() -> None:
    x, w = params()
    y = relay.var("y", shape=(4, 8))
    shared = relay.Let(y, relay.nn.dense(x, w), relay.nn.relu(y))
    closure = relay.Function([relay.var("i", "int32")], relay.nn.relu(shared))
    called = relay.Let(f := relay.var("f"), closure, f(relay.const(1)))
    mixed = run(relay.Function([x, w], relay.Tuple([shared, called])), ToMixedPrecision())
    nodes = post_order(mixed)
    products = [n for n in nodes if isinstance(n, relay.Call) and n.op == tvm.ir.Op.get("nn.dense")]
    assert len([n for n in nodes if isinstance(n, relay.Let)]) == 2
    assert [str(call.args[0].checked_type.dtype) for call in products] == ["float16"]


def test_what_is_made_of_parameters_follows_too() -> None:
    x, w = params()
    b = relay.var("b", shape=(8,))
    func = relay.Function([x, w, b], relay.nn.dense(x, w) * relay.sqrt(b + relay.const(1.0)))
    assert str(run(func, ToMixedPrecision()).ret_type.dtype) == "float16"


def test_softmax_stays_wide() -> None:
    x, w = params()
    before = relay.Function([x, w], relay.nn.softmax(relay.nn.dense(x, w)))
    x, w = params()
    after = relay.Function([x, w], relay.nn.softmax(narrow(layer(x, w), "float32")))
    assert_transforms(before, after, ToMixedPrecision())


def test_wide_programs_are_unchanged() -> None:
    x, _ = params()
    assert_unchanged(relay.Function([x], relay.exp(relay.nn.relu(x))), ToMixedPrecision())


def test_a_value_that_goes_to_and_fro_is_not_converted_twice() -> None:
    x, w = params()
    y = relay.nn.relu(relay.nn.dense(x, w))
    after = run(
        relay.Function([x, w], relay.nn.dense(relay.exp(y), relay.Tuple([y])[0])),
        ToMixedPrecision(),
    )
    assert str(after).count('dtype="float32"') == 1 + str(after).count('out_dtype="float32"')


def test_tuples_and_control_flow() -> None:
    x, w = params()
    y = relay.nn.dense(x, w)
    both = relay.concatenate([y, relay.nn.relu(y)], axis=0)
    after = run(relay.Function([x, w], both), ToMixedPrecision())
    assert str(after.ret_type.dtype) == "float16"
    c = relay.var("c", "bool")
    after = run(relay.Function([c, x, w], relay.If(c, y, x)), ToMixedPrecision())
    assert str(after.ret_type.dtype) == "float32"


def test_output_dtype_is_kept_on_request() -> None:
    x, w = params()
    func = relay.Function([x, w], relay.nn.dense(x, w))
    with tvm.transform.PassContext(config={KEEP: True}):
        assert str(run(func, ToMixedPrecision()).ret_type.dtype) == "float32"
    assert str(run(func, ToMixedPrecision()).ret_type.dtype) == "float16"


@pytest.fixture
def unknown_precision() -> Iterator[None]:
    op = tvm.ir.Op.get("tanh")
    before, op.precision = op.precision, None
    yield
    op.precision = before
    op.levels.clear()


def test_operators_without_facet(unknown_precision: None) -> None:
    x, w = params()
    func = relay.Function([x, w], relay.tanh(relay.nn.dense(x, w)))
    with pytest.raises(tvm.error.OpNotImplemented, match="requires the precision of tanh"):
        run(func, ToMixedPrecision(missing_op_mode=0))
    with pytest.warns(UserWarning, match="leaves tanh in float32"):
        assert str(run(func, ToMixedPrecision()).ret_type.dtype) == "float32"
    register_op_attr(
        "tanh", "FTVMMixedPrecisionConversionType", lambda call, dtype: [1, dtype, dtype]
    )
    assert str(run(func, ToMixedPrecision(missing_op_mode=0)).ret_type.dtype) == "float16"


def test_bad_parameters_are_rejected() -> None:
    with pytest.raises(tvm.TVMError, match="float16 or bfloat16"):
        ToMixedPrecision("int8")
    with pytest.raises(tvm.TVMError, match="missing_op_mode"):
        ToMixedPrecision(missing_op_mode=3)


def test_values_are_close() -> None:
    x, w = params()
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    a, b = (np.random.default_rng(i).random(s, "float32") for i, s in enumerate([(4, 8), (8, 8)]))
    mod = ToMixedPrecision()(tvm.IRModule.from_expr(func))
    got = relay.create_executor("graph", mod).evaluate()(a, b)
    np.testing.assert_allclose(got.numpy().astype("float32"), a @ b.T, rtol=5e-3)


def test_a_kernel_rounds_what_it_stores_and_nothing_before() -> None:
    x = relay.var("x", shape=(32,), dtype="bfloat16")
    one = relay.const(1.0, "bfloat16")
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x + one) - one))
    small = tvm.nd.array(np.full(32, 2.0**-9).astype("bfloat16"))
    got = relay.create_executor("graph", mod=mod).evaluate()(small)
    np.testing.assert_array_equal(got.numpy(), small.numpy())


def test_rule_of_a_user_is_made_of_the_generic_ones() -> None:
    names = relay.transform.mixed_precision
    x, w = params()
    conv = relay.nn.dense(x, w)
    assert names.generic_always_op(conv, "float16") == [0, "float32", "float16"]
    assert names.generic_follow_op(relay.exp(x), "float16") == [1, "float16", "float16"]
    func = relay.Function([x, w], relay.nn.relu(conv))
    with TempOpAttr("nn.dense", "FTVMMixedPrecisionConversionType", names.generic_never_op):
        assert "float16" not in str(run(func, ToMixedPrecision()))


def test_functions_in_tuples_stay() -> None:
    x, w = params()
    y, f = relay.var("y", shape=(4, 8)), relay.var("f")
    func = relay.Function([y], relay.nn.relu(y))
    call = relay.Call(relay.TupleGetItem(f, 0), [relay.nn.dense(x, w)])
    before = relay.Function([x, w], relay.Let(f, relay.Tuple([func, func]), call))
    assert run(before, ToMixedPrecision()).checked_type == run(before).checked_type


def narrow_first(param: relay.Var) -> relay.Expr:
    """The parameter after a product, if it is of float32: the pass narrows it."""
    ty = param.type_annotation
    if ty.dtype != "float32" or 0 in ty.concrete_shape:
        return param
    column = relay.nn.dense(relay.reshape(param, (-1, 1)), relay.const(np.ones((1, 1), "float32")))
    return relay.reshape(column, ty.concrete_shape)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_operator_has_a_type_after_narrow_ones(dtype: str) -> None:
    for case in {case.name: case for case in CASES}.values():
        given = [
            relay.var(f"p{i}", shape=a.shape, dtype=str(a.dtype)) for i, a in enumerate(case.inputs)
        ]
        before = relay.Function(given, case.build(*[narrow_first(p) for p in given]))
        with tvm.transform.PassContext(config={KEEP: True}):
            after = run(before, ToMixedPrecision(dtype, 2))
        assert after.checked_type == run(before).checked_type, case.name
