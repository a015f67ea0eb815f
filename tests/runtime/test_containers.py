"""Arrays, maps, text, shapes and tagged tuples, as classic programs use them."""

from __future__ import annotations

import copy
import pickle
from types import MappingProxyType
from typing import Any

import pytest

import tvm
from tvm.ir.container import Array, Map
from tvm.runtime import ADT, ShapeTuple, String, convert, tuple_object
from tvm.runtime.container import getitem_helper


def test_arrays_have_length_indices_slices_and_iteration() -> None:
    array = convert([1, 2, 3])
    assert type(array) is Array and len(array) == 3
    assert array[-1] == 3 and array[-3:-1] == [1, 2] and array[::2] == [1, 3]
    assert list(array) == [1, 2, 3] and 2 in array and array.index(3) == 2
    assert repr(array) == "[1, 2, 3]" and str(convert(["a"])) == "['a']"
    with pytest.raises(IndexError, match="index 3 is out of range: there are 3 elements"):
        array[3]
    with pytest.raises(TypeError):
        array[0] = 1


def test_arrays_join_with_lists() -> None:
    array = convert([1, 2])
    assert type(array + [3]) is Array and array + [3] == convert([1, 2, 3])
    assert [0] + array == convert([0, 1, 2]) and array[1:] + [5] == [2, 5]


def test_maps_have_items_keys_values_and_get() -> None:
    a, b = tvm.tir.Var("a", "int32"), tvm.tir.Var("b", "int32")
    mapping = convert({a: 2, b: 3})
    assert type(mapping) is Map and len(mapping) == 2 and a in mapping
    assert mapping[b] == 3 and mapping.get(b) == 3 and mapping.get("none", 7) == 7
    assert list(mapping) == list(mapping.keys()) == [a, b]
    assert dict(mapping.items()) == {a: 2, b: 3} and list(mapping.values()) == [2, 3]
    with pytest.raises(KeyError):
        mapping["none"]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.__setitem__("a", 1), lambda m: m.update(a=1), lambda m: m.pop("a"),
        lambda m: m.clear(), lambda m: m.__delitem__("a"), lambda m: m.setdefault("b", 1),
        lambda m: m.popitem(), lambda m: m.__ior__({}),
    ],
)  # fmt: skip
def test_maps_do_not_change(change: Any) -> None:
    mapping = convert({"a": 1})
    with pytest.raises(TypeError, match="a Map does not change"):
        change(mapping)
    assert mapping == {"a": 1}


def test_keys_of_maps_are_objects_text_or_numbers() -> None:
    assert convert({1: "x", "k": 2})[1] == "x"
    with pytest.raises(ValueError, match="Map needs objects, text or numbers as keys"):
        convert({(1, 2): 3})


def test_fields_of_nodes_are_arrays_and_maps() -> None:
    x = tvm.tir.Var("x", "int32")
    call = tvm.tir.call_extern("int32", "f", x, 1)
    assert isinstance(call.args, tvm.ir.Array) and isinstance(
        call.args, tvm.runtime.container.Array
    )
    func = tvm.tir.PrimFunc([x], tvm.tir.Evaluate(x)).with_attr("k", {"a": [1]})
    assert isinstance(func.attrs["k"], tvm.ir.Map) and isinstance(
        func.attrs["k"]["a"], tvm.ir.Array
    )
    assert not isinstance(call, tvm.ir.Array) and not isinstance("text", tvm.ir.Array)
    assert not isinstance(ShapeTuple([1]), tvm.ir.Array)
    assert isinstance(MappingProxyType({}), tvm.ir.Map) and not isinstance(call.args, tvm.ir.Map)


def test_nested_containers_reach_callbacks() -> None:
    seen: list[Any] = []

    @convert
    def callback(array: Any, mapping: Any) -> Any:
        assert isinstance(array, tvm.ir.Array) and isinstance(mapping, tvm.ir.Map)
        seen.append((array[1][0], mapping["k"]["inner"][-1]))
        return {"result": [array, mapping]}

    given = [1, [tvm.nd.array([1.0])]], {"k": {"inner": ["x", None]}}
    for arguments in (given, [convert(value) for value in given]):
        result = callback(*arguments)
        assert result["result"][0] is arguments[0] and seen[-1][1] is None
        assert isinstance(seen[-1][0], tvm.nd.NDArray)


def test_containers_are_the_same_as_themselves_alone() -> None:
    array, mapping = convert([1]), convert({"a": 1})
    assert array.same_as(array) and not array.same_as(convert([1]))
    assert mapping.same_as(mapping) and not mapping.same_as(convert({"a": 1}))
    assert hash(convert([1])) == hash(array) and hash(convert({"a": 1})) == hash(mapping)


@pytest.mark.parametrize(
    "value",
    [
        convert([1, ["x", {"a": 2.5}]]), convert({"a": [1, None]}), String("text"),
        ShapeTuple([2, 3]), convert([]), convert({}),
    ],
)  # fmt: skip
def test_containers_are_pickled_and_copied(value: Any) -> None:
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):
        assert type(again) is type(value) and again == value


def test_converted_values_are_of_the_classic_kinds() -> None:
    assert type(convert("text")) is String and convert("text") == "text"
    assert (
        convert(3) == 3 and convert(2.5) == 2.5 and convert(None) is None and convert(True) is True
    )
    assert isinstance(convert(len), tvm.runtime.PackedFunc)
    array, device = tvm.nd.array([1.0]), tvm.cpu()
    assert convert(array) is array and convert(device) is device
    assert convert(array.dtype) is array.dtype
    assert [type(item) for item in convert(["a", [1], {"b": 2}])] == [String, Array, Map]


def test_constants_have_the_classic_types() -> None:
    assert tvm.runtime.const(1).dtype == "int32" and tvm.runtime.const(2**40).dtype == "int64"
    assert tvm.runtime.const(1.5).dtype == "float32" and tvm.runtime.const(True).dtype == "bool"
    assert tvm.runtime.const(1, "int8").value == 1


def test_tagged_tuples() -> None:
    array = tvm.nd.array([1.0])
    adt = ADT(3, [array, tuple_object([array])])
    assert adt.tag == 3 and len(adt) == 2 and adt[0] is array and adt[-1].tag == 0
    assert adt[:1] == [array] and len(list(adt)) == 2 and len(tuple_object()) == 0
    with pytest.raises(IndexError):
        adt[2]
    again = pickle.loads(pickle.dumps(ADT(1, ["x"])))
    assert (again.tag, list(again)) == (1, ["x"])


def test_shape_tuples() -> None:
    shape = ShapeTuple([1, 2, 3])
    assert len(shape) == 3 and shape[-1] == 3 and shape == ShapeTuple((1, 2, 3)) == (1, 2, 3)
    assert shape != ShapeTuple([1]) and tvm.runtime.convert(shape) is shape
    with pytest.raises((TypeError, ValueError)):
        ShapeTuple(["x"])


def test_elements_are_fetched_by_the_helper() -> None:
    def fetch(base: int, index: int) -> int:
        return base + index

    assert getitem_helper(10, fetch, 3, -1) == 12
    assert getitem_helper(10, fetch, 3, slice(None, None, -1)) == [12, 11, 10]
    with pytest.raises(IndexError):
        getitem_helper(10, fetch, 3, -4)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("Array", (1, "x"), ("Array", [1, "x"])),
        ("ArrayGetItem", ([4, 5], 1), 5),
        ("ArraySize", ([4, 5],), 2),
        ("MapSize", ({"a": 1},), 1),
        ("MapGetItem", ({"a": 1}, "a"), 1),
        ("MapCount", ({"a": 1}, "b"), 0),
        ("MapItems", ({"a": 1},), ("Array", ["a", 1])),
        ("String", ("x",), "x"),
        ("GetFFIString", (String("x"),), "x"),
        ("GetShapeTupleSize", (ShapeTuple([1, 2]),), 2),
        ("GetShapeTupleElem", (ShapeTuple([1, 2]), 1), 2),
        ("GetADTTag", (ADT(2, []),), 2),
        ("GetADTSize", (ADT(2, [1]),), 1),
        ("GetADTFields", (ADT(2, [7]), 0), 7),
        ("BoxBool", (True,), True),
        ("SanitizeName", ("a-b",), "a_b"),
    ],
)
def test_global_functions_of_containers(name: str, args: Any, expected: Any) -> None:
    result = tvm.get_global_func("runtime." + name)(*args)
    if isinstance(expected, tuple):
        assert type(result).__name__ == expected[0] and list(result) == expected[1]
    else:
        assert result == expected


def test_containers_are_made_by_global_functions() -> None:
    api = tvm.runtime._ffi_api
    assert api.Map("a", 1, "b", 2) == {"a": 1, "b": 2} and type(api.Map()) is Map
    assert type(api.ShapeTuple(1, 2)) is ShapeTuple and api.Tuple(5)[0] == 5
    assert api.ADT(4, "x").tag == 4
    with pytest.raises(ValueError, match="keys and values in turn"):
        api.Map("a")
    with pytest.raises(KeyError):
        api.MapGetItem({}, "a")
    with pytest.raises(AttributeError, match=r"no global function runtime\.Nothing"):
        api.Nothing
    x = tvm.tir.Var("x", "int32")
    assert (
        api.ObjectPtrHash(x) == api.ObjectPtrHash(x) != api.ObjectPtrHash(tvm.tir.Var("x", "int32"))
    )
    array = api.TVMArrayAllocWithScope(ShapeTuple([2, 2]), "float32", tvm.cpu(), "global")
    assert api.TVMArrayCreateView(array, ShapeTuple([4]), "int32").shape == (4,)
