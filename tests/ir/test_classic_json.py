"""JSON in the form of classic releases, written by hand."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay, tir


def document(nodes: list[dict[str, Any]], version: str, *arrays: bytes, root: int = 1) -> str:
    texts = [base64.b64encode(a).decode() for a in arrays]
    found = [{"type_key": ""}, *nodes]
    attrs = {"tvm_version": version}
    return json.dumps({"root": root, "nodes": found, "b64ndarrays": texts, "attrs": attrs})


def string(text: str) -> dict[str, Any]:
    return {"type_key": "runtime.String", "repr_str": text}


def number(value: int) -> dict[str, Any]:
    return {"type_key": "IntImm", "attrs": {"dtype": "int32", "span": "0", "value": str(value)}}


def array_of(*indices: int) -> dict[str, Any]:
    return {"type_key": "Array", "data": list(indices)} if indices else {"type_key": "Array"}


def array_bytes(array: np.ndarray) -> bytes:
    """A float32 array as runtimes of this family write it."""
    head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, array.ndim, 2, 32, 1)
    shape = struct.pack(f"<{array.ndim}q", *array.shape)
    return head + shape + struct.pack("<q", array.nbytes) + array.tobytes()


def test_a_function_with_attributes_and_a_constant_is_read() -> None:
    weight = np.arange(6, dtype="float32").reshape(2, 3)
    nodes = [
        {"type_key": "relay.Function", "attrs": {
            "_checked_type_": "0", "attrs": "2", "body": "5", "params": "4", "ret_type": "0",
            "span": "0", "type_params": "16", "virtual_device_": "0"}},
        {"type_key": "DictAttrs", "attrs": {"__dict__": "3"}},
        {"type_key": "Map", "data": [17, 18]},
        array_of(7),
        {"type_key": "relay.Call", "attrs": {
            "_checked_type_": "0", "args": "6", "attrs": "14", "op": "13", "span": "0",
            "type_args": "16", "virtual_device_": "0"}},
        array_of(7, 12),
        {"type_key": "relay.Var", "attrs": {
            "_checked_type_": "0", "span": "0", "type_annotation": "9", "vid": "8"}},
        {"type_key": "relay.Id", "attrs": {"name_hint": "15"}},
        {"type_key": "relay.TensorType", "attrs": {"dtype": "float32", "shape": "10", "span": "0"}},
        array_of(11, 11),
        number(3),
        {"type_key": "relay.Constant", "attrs": {"_checked_type_": "0", "data": "0", "span": "0"}},
        {"type_key": "Op", "repr_str": "nn.dense"},
        {"type_key": "relay.attrs.DenseAttrs", "attrs": {
            "auto_scheduler_rewritten_layout": "", "out_dtype": "float32", "units": "19"}},
        string("data"),
        array_of(),
        string("Primitive"),
        number(1),
        number(2),
    ]  # fmt: skip
    func = tvm.ir.load_json(document(nodes, "0.18.0", array_bytes(weight)))
    assert isinstance(func, relay.Function) and func.attrs["Primitive"] == 1
    x = relay.var("data", shape=(3, 3))
    call = relay.nn.dense(x, relay.const(weight), units=2, out_dtype="float32")
    expected = relay.Function([x], call).with_attr("Primitive", tir.IntImm("int32", 1))
    tvm.ir.assert_structural_equal(func, expected)
    assert func.params[0].name_hint == "data"


def test_numbers_of_operators_are_nodes_or_texts() -> None:
    take = {"type_key": "relay.attrs.TakeAttrs", "attrs": {
        "axis": "3", "batch_dims": "2", "mode": "4"}}  # fmt: skip
    attrs = tvm.ir.load_json(document([take, number(0), number(1), string("fast")], "0.18.0"))
    assert (attrs.batch_dims, attrs.axis, attrs.mode) == (0, 1, "fast")
    stacked = {"type_key": "relay.attrs.StackAttrs", "attrs": {"axis": "2"}}
    assert tvm.ir.load_json(document([stacked, number(-1)], "0.7.0")).axis == -1
    joined = {"type_key": "relay.attrs.ConcatenateAttrs", "attrs": {"axis": "2"}}
    assert tvm.ir.load_json(document([joined, number(-1)], "0.7.0")).axis == 2


def broadcast(lanes: str, *more: dict[str, Any]) -> list[dict[str, Any]]:
    attrs = {"dtype": "int32x4", "lanes": lanes, "span": "0", "value": "2"}
    return [{"type_key": "tir.Broadcast", "attrs": attrs}, number(7), *more]


def test_lanes_are_numbers_before_release_0_16_and_expressions_after() -> None:
    old = tvm.ir.load_json(document(broadcast("4"), "0.15.0"))
    new = tvm.ir.load_json(document(broadcast("3", number(4)), "0.16.0"))
    assert old.dtype == new.dtype == "int32x4"
    tvm.ir.assert_structural_equal(old, new)


def test_names_of_release_0_6_are_known() -> None:
    nodes = [
        {"type_key": "Add", "attrs": {"a": "2", "b": "2", "dtype": "int32"}},
        {"type_key": "Variable", "attrs": {"dtype": "int32", "name": "i"}},
    ]
    total = tvm.ir.load_json(document(nodes, "0.6.0"))
    assert isinstance(total, tir.Add) and total.a.name == "i" and total.a.same_as(total.b)
    kind = {"type_key": "relay.GlobalTypeVar", "attrs": {"kind": "0", "span": "0", "var": "2"}}
    assert tvm.ir.load_json(document([kind, nodes[1]], "0.6.0")).name_hint == "i"
    op = tvm.ir.load_json(document([{"type_key": "relay.Op", "global_key": "add"}], "0.6.0"))
    assert op is relay.op.get("add")


def test_maps_keep_both_of_their_forms() -> None:
    by_name = [{"type_key": "StrMap", "keys": ["a", "b"], "data": [2, 3]}, number(1), number(2)]
    by_node = [{"type_key": "Map", "data": [4, 2, 5, 3]}, *by_name[1:], string("a"), string("b")]
    for nodes, version in ((by_name, "0.6.0"), (by_node, "0.18.0")):
        found = tvm.ir.load_json(document(nodes, version))
        assert list(found) == ["a", "b"] and found["b"].value == 2


def test_damaged_documents_are_rejected() -> None:
    add = {"type_key": "tir.Add", "attrs": {"a": "1", "b": "1", "dtype": "int32"}}
    with pytest.raises(tvm.TVMError, match="contains itself"):
        tvm.ir.load_json(document([add], "0.18.0"))
    with pytest.raises(tvm.TVMError, match="without b"):
        tvm.ir.load_json(document([{"type_key": "tir.Add", "attrs": {"a": "0"}}], "0.18.0"))
    with pytest.raises(tvm.TVMError, match="found the type key 'tir.Ad'"):
        tvm.ir.load_json(document([{"type_key": "tir.Ad", "attrs": {}}], "0.18.0"))
    with pytest.raises(tvm.TVMError, match="load_json requires"):
        tvm.ir.load_json(document([], "0.18.0", b"no array"))
