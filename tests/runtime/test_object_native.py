"""A user's own C++ library, loaded with ctypes: functions by name, kinds of objects, errors."""

from __future__ import annotations

import ctypes
import gc
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tvm
import tvm.testing
from tvm._ffi import libinfo
from tvm.contrib import cc
from tvm.runtime import convert
from tvm.runtime.container import Array, Map
from tvm.runtime.packed_func import NativeValue

SOURCE = r"""
#include <tvm/node/reflection.h>
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/module.h>
#include <tvm/runtime/registry.h>

using namespace tvm;
using namespace tvm::runtime;

class ShapeNode : public Object {
 public:
  std::string label;
  void VisitAttrs(AttrVisitor* v) { v->Visit("label", &label); }
  static constexpr const char* _type_key = "demo.Shape";
  TVM_DECLARE_BASE_OBJECT_INFO(ShapeNode, Object);
};
class Shape : public ObjectRef {
 public:
  TVM_DEFINE_OBJECT_REF_METHODS(Shape, ObjectRef, ShapeNode);
};

class BoxNode : public ShapeNode {
 public:
  int64_t width{0};
  double weight{0};
  bool open{false};
  DLDataType dtype{kDLFloat, 32, 1};
  NDArray data;
  PackedFunc callback;
  Shape inner;
  ObjectRef extra;
  Array<int64_t> sizes;

  void VisitAttrs(AttrVisitor* v) {
    ShapeNode::VisitAttrs(v);
    v->Visit("width", &width);
    v->Visit("weight", &weight);
    v->Visit("open", &open);
    v->Visit("dtype", &dtype);
    v->Visit("data", &data);
    v->Visit("callback", &callback);
    v->Visit("inner", &inner);
    v->Visit("extra", &extra);
    v->Visit("sizes", &sizes);
  }
  int64_t Area(int64_t height) const { return width * height; }
  static constexpr const char* _type_key = "demo.Box";
  TVM_DECLARE_FINAL_OBJECT_INFO(BoxNode, ShapeNode);
};
class Box : public Shape {
 public:
  Box(std::string label, int64_t width) {
    auto node = make_object<BoxNode>();
    node->label = std::move(label);
    node->width = width;
    data_ = std::move(node);
  }
  TVM_DEFINE_OBJECT_REF_METHODS(Box, Shape, BoxNode);
  TVM_DEFINE_OBJECT_REF_COW_METHOD(BoxNode);
};

class PlainNode : public Object {
 public:
  static constexpr const char* _type_key = "demo.Plain";
  TVM_DECLARE_FINAL_OBJECT_INFO(PlainNode, Object);
};

TVM_REGISTER_NODE_TYPE(ShapeNode);
TVM_REGISTER_NODE_TYPE(BoxNode);
TVM_REGISTER_OBJECT_TYPE(PlainNode);

TVM_REGISTER_GLOBAL("demo.lib.add").set_body_typed([](int64_t a, int64_t b) { return a + b; });
TVM_REGISTER_GLOBAL("demo.lib.count").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = args.size(); });
TVM_REGISTER_GLOBAL("demo.lib.first_int").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = int64_t(args[0]) + int64_t(args[1]); });
TVM_REGISTER_GLOBAL("demo.lib.Box").set_body_typed([](std::string label, int64_t width) { return Box(label, width); });
TVM_REGISTER_GLOBAL("demo.lib.plain").set_body_typed([] { return ObjectRef(make_object<PlainNode>()); });
TVM_REGISTER_GLOBAL("demo.lib.label").set_body_typed([](Shape shape) { return shape.defined() ? shape->label : "none"; });
TVM_REGISTER_GLOBAL("demo.lib.area").set_body_method<Box>(&BoxNode::Area);
TVM_REGISTER_GLOBAL("demo.lib.widened").set_body_typed([](Box box) {
  box.CopyOnWrite()->width += 1;
  return box;
});
TVM_REGISTER_GLOBAL("demo.lib.fill").set_body_typed([](Box box, ObjectRef extra, Shape inner, NDArray data, PackedFunc f) {
  auto* node = const_cast<BoxNode*>(box.get());
  node->extra = extra;
  node->inner = inner;
  node->data = data;
  node->callback = f;
  return box;
});
TVM_REGISTER_GLOBAL("demo.lib.apply").set_body_typed([](TypedPackedFunc<int64_t(int64_t)> f, int64_t x) { return f(f(x)); });
TVM_REGISTER_GLOBAL("demo.lib.is_box").set_body_typed([](ObjectRef ref) { return ref.as<BoxNode>() != nullptr; });
TVM_REGISTER_GLOBAL("demo.lib.kind").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = ArgTypeCode2Str(args[0].type_code()); });
TVM_REGISTER_GLOBAL("demo.lib.fail").set_body_typed([](std::string text) { LOG(FATAL) << text; });
TVM_REGISTER_GLOBAL("demo.lib.throw").set_body_typed([](int kind) {
  if (kind == 0) throw std::bad_alloc();
  if (kind == 1) throw std::out_of_range("far out");
  throw kind;
});
TVM_REGISTER_GLOBAL("demo.lib.check").set_body_typed([](int a, int b) { ICHECK_EQ(a, b) << "they differ"; });
TVM_REGISTER_GLOBAL("demo.lib.retry").set_body_typed([](PackedFunc f) {
  try {
    f();
  } catch (const Error& error) {
    return std::string(error.what());
  }
  return std::string("no error");
});
TVM_REGISTER_GLOBAL("demo.lib.total").set_body_typed([](Array<Array<int64_t>> rows) {
  int64_t total = 0;
  for (Array<int64_t> row : rows) {
    for (int64_t item : row) total += item;
  }
  return total;
});
TVM_REGISTER_GLOBAL("demo.lib.split").set_body_typed([](std::string text, int64_t at) {
  Array<std::string> parts{text.substr(0, at), text.substr(at)};
  Array<std::string> more = parts;
  more.push_back("end");
  return Array<Array<std::string>>{parts, more};
});
TVM_REGISTER_GLOBAL("demo.lib.look_up").set_body_typed([](Map<std::string, Array<int64_t>> map, std::string key, int64_t i) {
  return map.at(key)[i];
});
TVM_REGISTER_GLOBAL("demo.lib.by_object").set_body_typed([](Map<ObjectRef, int64_t> map, ObjectRef key) {
  return map.Get(key, -1);
});
TVM_REGISTER_GLOBAL("demo.lib.grow").set_body_typed([](Map<std::string, ObjectRef> map, std::string key, ObjectRef value) {
  Map<std::string, ObjectRef> grown = map;
  grown.Set(key, value);
  ICHECK_EQ(grown.items().size(), grown.size());
  return grown;
});
TVM_REGISTER_GLOBAL("testing.nop").set_body([](TVMArgs, TVMRetValue* rv) { *rv = "taken over"; });
"""


@tvm.register_object("demo.Shape")
class Shape(tvm.Object):
    def shout(self) -> str:
        return self.label.upper()  # type: ignore[attr-defined]


@tvm.register_object("demo.Box")
class Box(Shape):
    def __init__(self, label: str, width: int) -> None:
        self.__init_handle_by_constructor__(tvm.get_global_func("demo.lib.Box"), label, width)

    def area(self, height: int) -> int:
        return tvm.get_global_func("demo.lib.area")(self, height)


@pytest.fixture(scope="module", autouse=True)
def user_library(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path(tmp_path_factory.mktemp("user"))
    (folder / "user.cc").write_text(SOURCE)
    runtime = Path(libinfo.find_lib_path()[0]).parent
    options = ["-std=c++17", "-O0", *(f"-I{path}" for path in libinfo.find_include_path())]
    options += [f"-L{runtime}", f"-Wl,-rpath,{runtime}", "-ltvm_runtime"]
    cc.create_shared(str(folder / "user.so"), str(folder / "user.cc"), options=options)
    ctypes.CDLL(str(folder / "user.so"), ctypes.RTLD_GLOBAL)


def call(name: str, *args: Any) -> Any:
    return tvm.get_global_func("demo.lib." + name)(*args)


def test_functions_of_the_library_are_global() -> None:
    assert call("add", 2, 40) == 42
    assert call("count", 1, None, "x") == 3
    assert call("apply", lambda x: x * 3, 2) == 18
    assert "demo.lib.add" in tvm._ffi.registry.list_global_func_names()


def test_a_taken_name_is_left_to_its_owner() -> None:
    assert tvm.get_global_func("testing.nop")() is None


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("add", (1, "x"), "demo.lib.add: argument 1: expected int, got str"),
        ("add", ([1], 2), "demo.lib.add: argument 0: expected int, got list"),
        ("add", (1, 2, 3), "demo.lib.add takes 2 arguments, got 3"),
        ("first_int", (1, 2.5), "demo.lib.first_int: argument 1: expected int, got float"),
        ("first_int", (1,), "demo.lib.first_int: argument 1: it is missing, got 1 arguments"),
        ("label", (3,), "demo.lib.label: argument 0: expected demo.Shape, got int"),
        ("label", ({},), "demo.lib.label: argument 0: expected demo.Shape, got dict"),
    ],
)
def test_arguments_of_a_wrong_kind_are_named(name: str, args: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(name, *args)
    assert str(caught.value) == message


def test_objects_are_instances_of_their_class() -> None:
    box = call("Box", "b", 3)
    assert type(box) is Box and isinstance(box, Shape) and isinstance(box, tvm.Object)
    assert (box.label, box.width, box.open, box.dtype) == ("b", 3, False, "float32")
    assert box.data is None and box.inner is None and box.extra is None
    assert box.shout() == "B" and box.area(5) == 15
    assert repr(box).startswith("demo.Box(label='b', width=3, weight=0.0, open=False")
    assert {"label", "width", "area"} <= set(dir(box))
    with pytest.raises(AttributeError, match="demo.Box has no attribute 'height'"):
        box.height


def test_objects_are_made_by_the_class() -> None:
    box = Box("mine", 4)
    assert box.width == 4 and call("is_box", box) and not call("is_box", call("plain"))
    assert call("label", box) == "mine" and call("label", None) == "none"
    with pytest.raises(TypeError, match=r"argument 0: expected demo.Box, got demo.Plain"):
        call("area", call("plain"), 1)


def test_identity_is_that_of_the_native_object() -> None:
    box = Box("b", 1)
    again = tvm.get_global_func("testing.echo")(box)
    assert again is not box and again == box and again.same_as(box) and hash(again) == hash(box)
    assert box != Box("b", 1) and box != 3 and {box: 1}[again] == 1
    assert box.handle.value == again.handle.value


def test_attributes_hold_any_kind_of_object() -> None:
    extra, data, inner = [1, {"a": 2}], tvm.nd.array(np.arange(3)), Box("inner", 2)
    box = call("fill", Box("b", 1), extra, inner, data, lambda x: x + 1)
    assert box.extra is extra and box.data.same_as(data)
    assert type(box.inner) is Box and box.inner == inner
    assert box.callback(41) == 42
    echo = tvm.get_global_func("testing.AcceptsObjectRef")
    assert (
        call("kind", echo(data)) == "NDArray" and call("kind", echo(box.callback)) == "PackedFunc"
    )


def test_copy_on_write_leaves_shared_objects_alone() -> None:
    box = Box("b", 1)
    wider = call("widened", box)
    assert (box.width, wider.width, wider.label) == (1, 2, "b")


def test_moved_objects_change_in_place() -> None:
    box = Box("b", 1)
    address = box.handle.value
    wider = call("widened", box._move())
    assert (wider.handle.value, wider.width) == (address, 2)
    assert box.handle.value is None and call("label", box) == "none"
    with pytest.raises(TypeError, match="None has no attributes"):
        box.width
    assert tvm.testing.echo(tvm.tir.Var("x", "int32")._move()).name == "x"


def test_objects_are_pickled_by_their_attributes() -> None:
    box = call("fill", Box("b", 7), None, Box("inner", 2), tvm.nd.array([1.0, 2.0]), None)
    again = pickle.loads(pickle.dumps(box))
    assert type(again) is Box and (again.label, again.width, again.inner.width) == ("b", 7, 2)
    np.testing.assert_array_equal(again.data.numpy(), [1.0, 2.0])


def test_attributes_are_checked() -> None:
    make = tvm.get_global_func("runtime.MakeNode")
    assert make("demo.Shape", "label", "x").label == "x"
    with pytest.raises(TypeError, match="attribute 'label' is missing"):
        make("demo.Shape")
    with pytest.raises(TypeError, match="demo.Shape has no attribute 'size'"):
        make("demo.Shape", "label", "x", "size", 1)
    with pytest.raises(TypeError, match=r"cannot be made from its attributes"):
        make("demo.Plain")
    state = {name: getattr(Box("b", 1), name) for name in dir(Box("b", 1)) if name in FIELDS}
    state["inner"] = call("plain")
    with pytest.raises(TypeError, match=r"expected demo.Shape, got demo.Plain"):
        make("demo.Box", *[part for item in state.items() for part in item])


FIELDS = [
    "label", "width", "weight", "open", "dtype", "data", "callback", "inner", "extra", "sizes",
]  # fmt: skip


def test_lists_become_arrays_of_cpp_code() -> None:
    assert call("total", [[1, 2], (3,), convert([4]), []]) == 10
    parts = call("split", "abcd", 1)
    assert isinstance(parts, tvm.ir.Array) and type(parts[0]) is Array
    assert list(parts[0]) == ["a", "bcd"] and list(parts[1]) == ["a", "bcd", "end"]
    with pytest.raises(TypeError, match=r"Array: argument 1: expected int, got str"):
        call("total", [[1, "x"]])
    with pytest.raises(TypeError, match=r"demo.lib.total: argument 0: expected Array, got dict"):
        call("total", {})
    box = Box("b", 1)
    assert list(box.sizes) == []
    state = {name: getattr(box, name) for name in FIELDS} | {"sizes": [2, 3]}
    made = tvm.get_global_func("runtime.MakeNode")(
        "demo.Box", *[v for i in state.items() for v in i]
    )
    assert list(made.sizes) == [2, 3]


def test_dicts_become_maps_of_cpp_code() -> None:
    assert call("look_up", {"a": [1, 2], "b": [3]}, "a", -0) == 1
    with pytest.raises(KeyError, match="the map has no such key"):
        call("look_up", {"a": [1]}, "z", 0)
    with pytest.raises(IndexError, match="index 5 is out of range: there are 1 elements"):
        call("look_up", {"a": [1]}, "a", 5)
    x, y = tvm.tir.Var("x", "int32"), tvm.tir.Var("y", "int32")
    assert call("by_object", {x: 1, y: 2}, y) == 2 and call("by_object", {x: 1}, y) == -1
    grown = call("grow", {"a": x}, "b", y)
    assert type(grown) is Map and list(grown) == ["a", "b"] and grown["b"] is y


def test_kinds_without_a_class_are_plain_objects() -> None:
    plain = call("plain")
    assert type(plain) is NativeValue and isinstance(plain, tvm.Object)
    assert plain.type_key == "demo.Plain" and repr(plain) == "demo.Plain()"
    assert plain == tvm.get_global_func("testing.echo")(plain)


def test_type_indices_follow_type_keys() -> None:
    index = tvm._ffi.get_object_type_index(Box)
    assert index == Box("b", 1)._native.type_index
    assert tvm._ffi.get_object_type_index(tvm.tir.Add) != index
    assert tvm._ffi.get_object_type_index(dict) is None


def test_native_objects_are_freed() -> None:
    class Payload:
        pass

    payload = Payload()
    alive = weakref.ref(payload)
    box = call("fill", Box("b", 1), payload, None, None, None)
    del payload
    gc.collect()
    assert box.extra is alive()
    del box
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("ValueError: too wide", ValueError, "too wide"),
        ("OpNotImplemented: no", tvm.error.OpNotImplemented, "no"),
        ("tvm.error.DiagnosticError: no", tvm.error.DiagnosticError, "no"),
        ("Layer: is missing", tvm.error.InternalError, "Layer: is missing"),
        ("plain text", tvm.error.InternalError, "plain text"),
    ],
)
def test_fatal_messages_name_their_class(
    text: str, kind: type[BaseException], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        call("fail", text)
    assert isinstance(caught.value, kind)


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (0, MemoryError, "out of memory"),
        (1, tvm.TVMError, "far out"),
        (2, tvm.TVMError, r"no std::exception"),
    ],
)
def test_any_cpp_exception_arrives(kind: int, error: type[BaseException], message: str) -> None:
    with pytest.raises(error, match=message):
        call("throw", kind)


def test_failed_checks_show_both_values() -> None:
    with pytest.raises(
        tvm.error.InternalError, match=r"\(a == b\) is false: 1 vs\. 2: they differ"
    ):
        call("check", 1, 2)


def test_cpp_code_can_catch_python_errors() -> None:
    def fail() -> None:
        raise KeyError("k")

    assert call("retry", fail) == "KeyError: 'k'"
    assert call("retry", lambda: None) == "no error"


def test_slots_cannot_stand_for_native_objects() -> None:
    from tvm._ffi.native_object import stand_for_native

    class Slotted(tvm.Object):
        __slots__ = ()

    with pytest.raises(TypeError, match="Slotted must not declare __slots__"):
        stand_for_native(Slotted, "demo.Slotted")


def test_handles_distinguish_objects() -> None:
    x, y = tvm.tir.Var("x", "int32"), tvm.tir.Var("y", "int32")
    assert x.handle.value == x.handle.value and x.handle.value != y.handle.value
