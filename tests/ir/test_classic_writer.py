"""What release 0.18 knows is written as that release writes it, and read back as it was."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay, te, tir
from tvm.ir.classic_schema import CLASSIC_ATTRIBUTES
from tvm.ir.node import NODE_TYPES
from tvm.script import tir as T


def written(node: Any) -> list[dict[str, Any]]:
    """The nodes of a classic document that gives the same node back."""
    text = tvm.ir.save_json(node)
    document = json.loads(text)
    assert list(document) == ["root", "nodes", "b64ndarrays", "attrs"]
    assert document["attrs"] == {"tvm_version": "0.18.0"} and document["nodes"][0] == {
        "type_key": ""
    }
    read = tvm.ir.load_json(text)
    tvm.ir.assert_structural_equal(read, node, map_free_vars=True)
    assert tvm.ir.save_json(read) == text
    nodes: list[dict[str, Any]] = document["nodes"]
    return nodes


@T.prim_func
def loops(a: T.handle, B: T.Buffer((16,), "float32")) -> None:
    T.func_attr({"global_symbol": "loops", "tir.noalias": True, "turns": 3, "share": 0.5})
    n = T.int32()
    A = T.match_buffer(a, (n, 16), "float32", offset_factor=1)
    for i in range(n):
        for j in T.thread_binding(16, thread="threadIdx.x", annotations={"pragma": 1}):
            with T.block("scaled"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = T.if_then_else(vi < 3, T.exp(B[vj]), T.float32(1))
    T.evaluate(T.call_extern("int32", "done", B.data, T.Broadcast(T.bool(True), 4)))


def network() -> relay.Function:
    x = relay.var("x", shape=(2, 3))
    weight = relay.const(np.arange(6, dtype="float32").reshape(2, 3))
    y = relay.nn.relu(relay.add(x, weight))
    y = relay.reshape(relay.sum(y, axis=1, keepdims=True), (-1,))
    half = relay.cast(relay.nn.softmax(y), "float16")
    return relay.Function([x], relay.Tuple([half, relay.stack([x, x], axis=0)]))


def test_the_form_is_that_of_the_published_files() -> None:
    assert written(tir.Var("x", "int32") + 1) == [
        {"type_key": ""},
        {"type_key": "tir.Add", "attrs": {"dtype": "int32", "a": "2", "b": "4", "span": "0"}},
        {
            "type_key": "tir.Var",
            "attrs": {"dtype": "int32", "name": "3", "type_annotation": "0", "span": "0"},
        },
        {"type_key": "runtime.String", "repr_str": "x"},
        {"type_key": "IntImm", "attrs": {"dtype": "int32", "value": "1", "span": "0"}},
    ]


@pytest.mark.parametrize(
    "node",
    [
        [tir.Var("v", "float32"), 1, 2.5, True, "text", "", "été\n", ()],
        {"a": tir.const(1, "int64"), "b": {"c": 2}},
        tir.Ramp(0, 2, 4),
        tir.StringImm("s"),
        tir.decl_buffer((4, 4), "float16", scope="shared"),
        relay.FuncType([relay.TensorType((relay.Any(), 3))], relay.TensorType((1,), "bool")),
        relay.TypeVar("t"),
    ],
    ids=str,
)
def test_values_are_read_back(node: Any) -> None:
    written(node)


def test_loop_programs_are_written_whole() -> None:
    nodes = written(loops)
    for item in nodes[1:]:
        names = CLASSIC_ATTRIBUTES.get(item["type_key"], ())
        assert set(names) <= set(item.get("attrs", ())), item
    boxed = [item for item in nodes if item["type_key"].startswith("runtime.Box")]
    assert [(b["type_key"], b["attrs"]["value"]) for b in boxed] == [
        ("runtime.BoxBool", "1"), ("runtime.BoxInt", "3"), ("runtime.BoxFloat", "0.5"),
    ]  # fmt: skip
    assert [n["repr_str"] for n in nodes if n["type_key"] == "Op"] == [
        "tir.if_then_else", "tir.exp", "tir.call_extern",
    ]  # fmt: skip


def test_modules_have_the_names_of_their_functions() -> None:
    nodes = written(tvm.IRModule({"loops": loops}))
    attrs = nodes[1]["attrs"]
    assert nodes[int(attrs["global_var_map_"])]["keys"] == ["loops"]
    assert nodes[int(attrs["global_type_var_map_"])] == {"type_key": "Map"}


def test_relay_functions_are_written_with_their_constants() -> None:
    func = network()
    nodes = written(func)
    assert {"relay.Function", "relay.Constant", "relay.attrs.ReduceAttrs"} <= {
        item["type_key"] for item in nodes
    }
    (stack,) = [item for item in nodes if item["type_key"] == "relay.attrs.StackAttrs"]
    assert nodes[int(stack["attrs"]["axis"])]["type_key"] == "IntImm"
    written(relay.transform.InferType()(tvm.IRModule.from_expr(func)))


def test_sources_are_written_and_read_back() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(1,), float32]) { add(%x, %x) }'
    mod = relay.fromtext(text)
    written(mod)
    read = tvm.ir.load_json(tvm.ir.save_json(mod))
    assert list(read.source_map.source_map.values()) == [text]


def test_what_the_release_does_not_know_has_a_form_of_its_own() -> None:
    A = te.placeholder((8,), name="A")
    x = relay.var("x", shape=(2, 2))
    for node in (te.compute((8,), lambda i: A[i]), relay.nn.dense(x, x), tir.const(float("inf"))):
        text = tvm.ir.save_json(node)
        assert "b64ndarrays" not in json.loads(text)
        assert tvm.ir.structural_equal(tvm.ir.load_json(text), node, map_free_vars=True)


def test_the_schema_names_fields_of_the_classes() -> None:
    for key, names in CLASSIC_ATTRIBUTES.items():
        fields = {field.name for field in NODE_TYPES[key].node_fields}
        assert set(names) <= fields, key
