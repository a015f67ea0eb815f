"""Facets of operators have the names of the classic release's private files."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay, te, topi
from tvm.relay.op import _reduce, _tensor, _tensor_grad, _transform
from tvm.relay.op.nn import _nn


def test_facets_are_those_of_the_records() -> None:
    assert _tensor_grad.exp_grad is tvm.ir.Op.get("exp").gradient
    assert _tensor_grad.dense_grad is tvm.ir.Op.get("nn.dense").gradient
    assert _tensor_grad.dyn_reshape_grad is tvm.ir.Op.get("dyn.reshape").gradient
    assert _nn.compute_lrn is tvm.ir.Op.get("nn.lrn").compute
    assert _transform.compute_scatter_nd is tvm.ir.Op.get("scatter_nd").compute
    with pytest.raises(AttributeError, match="no attribute 'nothing_grad'"):
        _ = _tensor_grad.nothing_grad
    assert not hasattr(_reduce, "helper")


def test_facets_can_be_called() -> None:
    x = relay.var("x", shape=(4,))
    call = relay.clip(x, 0.0, 1.0)
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], call)))
    (tensor,) = _tensor.clip_compute(
        call.attrs, [te.placeholder((4,))], typed["main"].body.checked_type
    )
    assert tuple(int(e) for e in tensor.shape) == (4,)


def test_schedules_of_a_lower_level_do_not_replace_those_of_a_higher_one() -> None:
    op = relay.op.register("test.levels_of_schedules")
    relay.op.register_schedule(op.name, topi.generic.schedule_injective, level=20)
    relay.op.register_schedule(op.name, topi.generic.schedule_extern, level=15)
    relay.op.register_injective_schedule(op.name)
    assert op.schedules == {"generic": topi.generic.schedule_injective}


def test_levels_hold_for_a_facet_under_each_of_its_names() -> None:
    op = relay.op.register("test.levels_of_names")
    tvm.ir.register_op_attr(op.name, "FTVMCompute", topi.exp, level=20)
    relay.op.register_compute(op.name, topi.log)
    assert op.compute is topi.exp


def test_strategies_are_those_of_the_module_and_of_its_generic_part() -> None:
    strategies = relay.op.strategy
    assert strategies.conv2d_strategy is strategies.generic.conv2d_strategy
    assert strategies.wrap_compute_conv2d is strategies.generic.wrap_compute_conv2d
    with pytest.raises(AttributeError, match="no attribute 'nothing_strategy'"):
        _ = strategies.nothing_strategy


def test_arguments_of_operators_have_names() -> None:
    op = relay.op.get("nn.conv2d")
    assert [argument.name for argument in op.arguments] == ["data", "weight"]
    assert op.arguments[0].type_info == "Expr"
