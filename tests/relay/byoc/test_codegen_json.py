"""A function as a JSON graph."""

from __future__ import annotations

import json

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.backend.contrib import JSONSerializer
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.transform import InferType, MergeComposite


def typed(func: relay.Function) -> relay.Function:
    return InferType()(tvm.IRModule.from_expr(func))["main"]


def graph_of(func: relay.Function) -> dict:
    return json.loads(JSONSerializer("f", typed(func)).serialize().get_json())


def test_nodes_come_in_order_with_types_and_attributes() -> None:
    x = relay.var("x", shape=(1, 3, 8, 8))
    weight = relay.const(np.zeros((4, 3, 3, 3), "float32"))
    conv = relay.nn.conv2d(
        x, weight, strides=(2, 1), padding=(1, 1), channels=4, kernel_size=(3, 3)
    )
    graph = graph_of(relay.Function([x], relay.nn.relu(conv)))
    assert [(n["op"], n["name"]) for n in graph["nodes"]] == [
        ("input", "x"),
        ("const", "f_const_0"),
        ("kernel", "nn.conv2d"),
        ("kernel", "nn.relu"),
    ]
    attrs = graph["nodes"][2]["attrs"]
    assert attrs["strides"] == [["2", "1"]]
    assert attrs["padding"] == [["1", "1", "1", "1"]]
    assert attrs["groups"] == [["1"]]
    assert attrs["data_layout"] == [["NCHW"]]
    assert attrs["out_dtype"] == [[""]]
    assert attrs["shape"] == [[[1, 4, 4, 8]]]
    assert attrs["dtype"] == [["float32"]]
    assert (attrs["num_inputs"], attrs["num_outputs"]) == ("2", "1")
    assert graph["nodes"][2]["inputs"] == [[0, 0, 0], [1, 0, 0]]
    assert graph["arg_nodes"] == [0, 1]
    assert graph["heads"] == [[3, 0, 0]]
    assert graph["node_row_ptr"] == [0, 1, 2, 3, 4]


def test_tuples_are_entries() -> None:
    x = relay.var("x", shape=(4, 6))
    parts = relay.split(x, 2, axis=1)
    graph = graph_of(relay.Function([x], relay.Tuple([parts[1], relay.exp(parts[0]), x])))
    assert graph["nodes"][1]["attrs"]["shape"] == [[[4, 3], [4, 3]]]
    assert graph["nodes"][2]["inputs"] == [[1, 0, 0]]
    assert graph["heads"] == [[1, 1, 0], [2, 0, 0], [0, 0, 0]]
    assert graph["node_row_ptr"] == [0, 1, 3, 4]


def test_a_tuple_as_input_says_how_many_tensors_it_has() -> None:
    x = relay.Var("x", relay.TupleType([relay.TensorType((2,)), relay.TensorType((3,))]))
    graph = graph_of(relay.Function([x], relay.exp(relay.TupleGetItem(x, 1))))
    assert graph["nodes"][0]["attrs"]["num_outputs"] == "2"
    assert graph["nodes"][1]["inputs"] == [[0, 1, 0]]
    assert graph["node_row_ptr"] == [0, 2, 3]


def test_composite_functions_are_kernels() -> None:
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    mod = tvm.IRModule.from_expr(relay.Function([x, y], relay.nn.relu(x + y)))
    table = [("mine.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard())))]
    graph = graph_of(MergeComposite(table)(mod)["main"])
    assert graph["nodes"][2]["name"] == "mine.add_relu"
    assert graph["nodes"][2]["attrs"]["PartitionedFromPattern"] == [["add_nn.relu_"]]


def test_constants_are_named_once() -> None:
    x = relay.var("x", shape=(4,))
    one = relay.const(np.ones(4, "float32"))
    serializer = JSONSerializer("f", typed(relay.Function([x], (x + one) * one))).serialize()
    assert serializer.const_names == ["f_const_0"]
    np.testing.assert_array_equal(serializer.constants["f_const_0"].numpy(), np.ones(4))


def test_numbers_of_attributes_are_text() -> None:
    x = relay.var("x", shape=(4, 4))
    graph = graph_of(
        relay.Function([x], relay.sum(relay.clip(x, 0.5, 6.0), axis=[0], keepdims=True))
    )
    assert graph["nodes"][1]["attrs"]["a_min"] == [["0.5"]]
    assert graph["nodes"][2]["attrs"]["keepdims"] == [["1"]]
    assert graph["nodes"][2]["attrs"]["axis"] == [["0"]]


def test_a_plain_function_cannot_be_called() -> None:
    x, p = relay.var("x", shape=(4,)), relay.var("p", shape=(4,))
    func = relay.Function([x], relay.Call(relay.Function([p], relay.exp(p)), [x]))
    with pytest.raises(tvm.TVMError, match="calls operators and composite functions"):
        graph_of(func)


def test_conditions_are_rejected() -> None:
    x, c = relay.var("x", shape=(4,)), relay.var("c", shape=(), dtype="bool")
    with pytest.raises(tvm.TVMError, match="cannot contain .*If"):
        graph_of(relay.Function([x, c], relay.If(c, x, relay.exp(x))))
