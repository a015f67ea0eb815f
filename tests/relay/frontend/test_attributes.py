"""The parts that importers of one's own are made of."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tvm
from tvm import relay
from tvm.relay.frontend.common import (
    AttrCvt,
    ExprTable,
    Renamer,
    StrAttrsDict,
    autopad,
    ensure_scalar_shape,
    get_relay_op,
    gru_cell,
    infer_channels,
    infer_value,
    lstm_cell,
    rnn_cell,
    shape_of,
    try_infer_value,
    try_resolve_var_to_const,
    unbind,
)

x = relay.var("x", shape=(2, 3))


def test_attributes_in_texts_are_read() -> None:
    attrs = StrAttrsDict(
        {
            "a": "1.5",
            "b": "3",
            "c": "(1, None)",
            "d": "((1, 2), (3, 4))",
            "e": "True",
            "f": "[1, 2]",
        }
    )
    assert attrs.get_float("a") == 1.5 and attrs.get_int("b") == 3 and attrs.get_str("b") == "3"
    assert attrs.get_int_tuple("c") == (1, None) and attrs.get_int_list("f") == (1, 2)
    assert attrs.get_tuple_tuple_int("d") == ((1, 2), (3, 4)) and attrs.get_bool("e")
    assert attrs.get_int("z", 7) == 7 and not attrs.has_attr("z")
    with pytest.raises(AttributeError, match="Required attribute z not found"):
        attrs.get_float("z")


def test_converters_rename_operators_and_attributes() -> None:
    convert = AttrCvt("leaky_relu", {"slope": ("alpha", 0.1)}, ignores=["name"], excludes=["bad"])
    tvm.ir.assert_structural_equal(
        convert([x], {"slope": 0.5, "name": "n", "T": 1}), relay.nn.leaky_relu(x, 0.5)
    )
    tvm.ir.assert_structural_equal(convert([x], {}), relay.nn.leaky_relu(x, 0.1))
    with pytest.raises(NotImplementedError, match="Attribute bad in operator leaky_relu"):
        convert([x], {"bad": 1})
    chosen = AttrCvt(lambda a: a["kind"], {"kind": "axis"}, disables=["kind"], extras={"axis": 0})
    tvm.ir.assert_structural_equal(chosen([x], {"kind": "softmax"}), relay.nn.softmax(x, 0))
    checked = AttrCvt("exp", custom_check=(lambda a: "n" in a, "n is there"))
    with pytest.raises(RuntimeError, match="Check failed: n is there"):
        checked([x], {})
    tvm.ir.assert_structural_equal(Renamer("multiply")([x, x], {"tvm_custom": {}}), x * x)
    assert get_relay_op("nn.dense") is relay.nn.dense
    with pytest.raises(tvm.error.OpNotImplemented, match="Unable to map op_name nothing"):
        get_relay_op("nothing")


def test_tables_keep_expressions_and_parameters() -> None:
    table = ExprTable()
    weight = table.new_const(np.ones((2, 2)))
    assert weight.name_hint == "_param_1" and table.params["_param_1"].dtype == "float32"
    table.set_expr("x", x)
    table.set_expr("x", weight)
    assert table.get_expr("x") is x and table.has_expr("x")
    table.set_expr("x", weight, force_override=True)
    assert table.get_expr("x") is weight


def test_values_and_shapes_are_found() -> None:
    p = relay.var("p", shape=(2,))
    params = {"p": tvm.nd.array(np.array([1, 2], "float32"))}
    np.testing.assert_array_equal(infer_value(p + relay.const(1.0), params), [2, 3])
    assert try_infer_value(p + x)[1] is False
    assert try_infer_value(relay.const(3), lambda v: int(v) + 1) == (4, True)
    rows = relay.var("rows", relay.TensorType((relay.Any(), 3)))
    np.testing.assert_array_equal(shape_of(x).data.numpy(), [2, 3])
    np.testing.assert_array_equal(shape_of(rows, start=1).data.numpy(), [3])
    assert infer_channels(x) == 2 and infer_channels(x, transpose=True) == 3
    assert len(unbind(x, 1)) == 3
    assert ensure_scalar_shape(relay.const([1.0])).op.name == "squeeze"
    one = relay.var("one", shape=(1,))
    found = try_resolve_var_to_const(one, {"one": np.array([5.0], "float32")})
    assert isinstance(found, relay.Constant)


def test_windows_are_padded() -> None:
    image = relay.var("image", shape=(1, 1, 5, 6))
    for mode, before in (("SAME_UPPER", 0), ("SAME_LOWER", 1)):
        pads = autopad(image, (1, 1), (2, 2), mode=mode).attrs.pad_width
        assert [int(p) for p in pads[2]] == [before, 1 - before]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("backwards", [False, True])
def test_cells_agree_with_torch(kind: str, backwards: bool) -> None:
    torch.manual_seed(0)
    layer = getattr(torch.nn, kind)(3, 4)
    steps = torch.randn(5, 2, 3)
    weights = [relay.const(p.detach().numpy()) for p in layer.parameters()]
    zeros = relay.const(np.zeros((2, 4), "float32"))
    given = [relay.const(step.numpy()) for step in steps]
    cells = {"RNN": rnn_cell, "GRU": gru_cell, "LSTM": lstm_cell}
    states = [zeros, zeros] if kind == "LSTM" else [zeros]
    outputs = cells[kind](given, *states, *weights, backwards=backwards)[0]
    found = relay.create_executor("graph").evaluate(relay.stack(outputs, 0)).numpy()
    expected = layer(steps.flip(0) if backwards else steps)[0].detach().numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_gated_units_stop_at_the_end_of_their_row() -> None:
    rng = np.random.default_rng(0)
    w, r, b = [relay.const(rng.random(s, "float32")) for s in ((12, 3), (12, 4), (12,))]
    given = [relay.const(rng.random((2, 3), "float32")) for _ in range(3)]
    zeros, lens = relay.const(np.zeros((2, 4), "float32")), relay.const(np.array([1, 3], "int32"))
    for before in (True, False):
        _, last = gru_cell(given, zeros, w, r, b, b, linear_before_reset=before, sequence_lens=lens)
        _, first = gru_cell(given[:1], zeros, w, r, b, b, linear_before_reset=before)
        found, one = [relay.create_executor("graph").evaluate(e).numpy() for e in (last, first)]
        np.testing.assert_allclose(found[0], one[0], rtol=1e-5)
        assert not np.allclose(found[1], one[1])
