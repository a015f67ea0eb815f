"""Fast operators take the place of exact ones where they are registered."""

from __future__ import annotations

from tvm import relay
from tvm.ir.op import Op, has_op
from tvm.relay.transform import FastMath

from .common import assert_unchanged, run


def test_operators_without_a_fast_form_stay() -> None:
    x = relay.var("x", shape=(4,))
    assert_unchanged(relay.Function([x], relay.log(x)), FastMath())
    if not has_op("fast_exp"):
        assert_unchanged(relay.Function([x], relay.exp(x)), FastMath())


def test_registered_operators_are_used() -> None:
    x = relay.var("x", shape=(4,))
    after = run(relay.Function([x], relay.tanh(x)), FastMath())
    assert after.body.op is Op.get("fast_tanh" if has_op("fast_tanh") else "tanh")
