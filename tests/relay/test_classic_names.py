"""Modules and parameters under the names that programs know them by."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay
from tvm.relay import dataflow_pattern as dfp


def test_questions_are_imported_from_their_old_module() -> None:
    from tvm.relay.analysis.analysis import all_dtypes, free_vars

    assert (all_dtypes, free_vars) == (relay.analysis.all_dtypes, relay.analysis.free_vars)


def test_constructors_take_the_names_of_old() -> None:
    x = relay.var("x", shape=(2,))
    let = relay.Let(variable=x, value=relay.const(1.0), body=x)
    assert let.var is x
    assert dfp.VarPattern(name_hint="x").match(x)
    pair = dfp.TupleGetItemPattern(tuple_value=dfp.wildcard(), index=0)
    assert pair.match(relay.TupleGetItem(relay.Tuple([x, x]), 0))
    assert dfp.TypePattern(dfp.wildcard(), ttype=relay.TensorType((2,), "float32")).match(x)
    assert relay.base.astext(obj=x, show_meta_data=False).startswith("#[version")


def test_variables_are_bound_from_the_module_of_expressions() -> None:
    x = relay.var("x", shape=(2,))
    func = relay.expr.bind(relay.Function([x], relay.exp(x)), {x: relay.const([1.0, 2.0])})
    assert not func.params


def test_paddings_are_spelled_out() -> None:
    from tvm.relay.op.nn.utils import get_pad_tuple1d, get_pad_tuple2d, get_pad_tuple3d

    assert get_pad_tuple1d(1) == (1, 1)
    assert get_pad_tuple2d((1, 2)) == (1, 2, 1, 2)
    assert get_pad_tuple3d((1, 2, 3)) == (1, 2, 3, 1, 2, 3)


def test_attribute_records_are_in_one_module() -> None:
    from tvm.relay.op.op_attrs import QuantizeAttrs, StftAttrs

    zero = relay.const(0)
    call = relay.qnn.op.quantize(relay.var("x", shape=(2,)), relay.const(1.0), zero)
    assert isinstance(call.attrs, QuantizeAttrs)
    assert StftAttrs.type_key == "relay.attrs.STFTAttrs"
    with pytest.raises(AttributeError, match="NothingAttrs"):
        relay.op.op_attrs.NothingAttrs


def test_reductions_and_external_compilers_are_registered() -> None:
    op = relay.op.op.register("test.reduction")
    relay.op.op.register_reduce_schedule("test.reduction")
    assert set(op.schedules) == {"generic", "cpu"}
    relay.op.op.register_external_compiler("test.reduction", lambda *_: None)
    assert tvm.ir.Op.get("test.reduction").has_attr("FTVMExternalCompiler")


def test_attributes_tell_their_types() -> None:
    call = relay.nn.conv2d(relay.var("x"), relay.var("w"), strides=(2, 2))
    fields = {info.name: info.type_info for info in call.attrs.list_field_info()}
    assert fields["groups"] == "int" and "tuple[int" in fields["strides"]
    assert list(fields) == call.attrs.keys()


def test_tuners_that_are_not_there_can_be_left_off_alone() -> None:
    for key in ("relay.backend.use_meta_schedule",):
        with tvm.transform.PassContext(config={key: False}):
            pass
        with pytest.raises(tvm.TVMError, match=f"config key {key} cannot be True"):
            tvm.transform.PassContext(config={key: True})
