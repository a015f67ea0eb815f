// Arrays and maps of C++ code, and their way to and from other languages' containers.
#include "container.h"

#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/registry.h>

namespace tvm {
namespace runtime {

namespace {

TVMRetValue Owned(const TVMArgValue& value) {
  TVMRetValue result;
  result = value;
  return result;
}

}  // namespace

// Text that is equal for equal keys.
std::string MapNode::KeyText(const TVMArgValue& key) {
  if (key.is_str()) return "s" + key.operator std::string();
  if (key.type_code() == kTVMArgInt || key.type_code() == kTVMArgBool) return "i" + std::to_string(int64_t(key));
  if (key.type_code() == kTVMArgFloat) return "f" + std::to_string(key.value().v_int64);
  ObjectRef object = key;
  if (auto* text = object.as<StringObj>()) return "s" + text->text();
  auto* foreign = object.as<ForeignObj>();
  return Cat("o", foreign ? foreign->foreign : static_cast<const void*>(object.get()));
}

bool MapNode::Erase(const TVMArgValue& key) {
  auto found = places_.find(KeyText(key));
  if (found == places_.end()) return false;
  size_t place = found->second;
  places_.erase(found);
  items_.erase(items_.begin() + place);
  for (auto& item : places_) item.second -= item.second > place;
  return true;
}

int64_t MapNode::Find(const TVMArgValue& key) const {
  auto it = places_.find(KeyText(key));
  return it == places_.end() ? -1 : static_cast<int64_t>(it->second);
}

void MapNode::Set(const TVMArgValue& key, TVMRetValue value) {
  auto [it, inserted] = places_.try_emplace(KeyText(key), items_.size());
  if (inserted) {
    items_.emplace_back();
    items_.back().first = key;
  }
  items_[it->second].second = std::move(value);
}

ObjectRef AsNativeContainer(const ObjectRef& foreign) { return AsNativeContainer(foreign, false); }

ObjectRef AsNativeContainer(const ObjectRef& foreign, bool has_shapes) {
  PackedFunc spread = Registry::Find("runtime.SpreadContainer");
  if (!spread.defined()) return foreign;
  ObjectRef result = foreign;
  PackedFunc make_array([&result](TVMArgs args, TVMRetValue*) {
    auto node = make_object<ArrayNode>();
    node->items.resize(args.size());
    for (int i = 0; i < args.size(); ++i) node->items[i] = args[i];
    result = ObjectRef(node);
  });
  PackedFunc make_map([&result](TVMArgs args, TVMRetValue*) {
    auto node = make_object<MapNode>();
    for (int i = 0; i + 1 < args.size(); i += 2) node->Set(args[i], Owned(args[i + 1]));
    result = ObjectRef(node);
  });
  PackedFunc make_shape([&result](TVMArgs args, TVMRetValue*) {
    std::vector<int64_t> extents;
    for (int i = 0; i < args.size(); ++i) extents.push_back(args[i]);
    result = ShapeTuple(std::move(extents));
  });
  if (has_shapes) spread(foreign, make_array, make_map, make_shape);
  else spread(foreign, make_array, make_map);
  return result;
}

ObjectRef AsShapeTuple(const ObjectRef& integers) {
  ObjectRef native = integers.get()->type_index() == kRuntimeForeign ? AsNativeContainer(integers) : integers;
  auto* array = native.as<ArrayNode>();
  if (array == nullptr) return native;
  std::vector<int64_t> extents;
  for (const TVMRetValue& item : array->items) extents.push_back(TVMArgValue(item.value(), item.type_code(), static_cast<int>(extents.size())));
  return ShapeTuple(std::move(extents));
}

TVM_REGISTER_GLOBAL("runtime.NativeSize").set_body_typed([](ObjectRef object) {
  if (auto* array = object.as<ArrayNode>()) return static_cast<int64_t>(array->items.size());
  if (auto* map = object.as<MapNode>()) return static_cast<int64_t>(map->items().size());
  if (auto* shape = object.as<ShapeTupleObj>()) return static_cast<int64_t>(shape->size);
  ThrowTypeError("expected Array or Map, got ", ForeignTypeName(object.get()));
});

// The element at a place; of a map, keys and values in turn.
TVM_REGISTER_GLOBAL("runtime.NativeItem").set_body([](TVMArgs args, TVMRetValue* rv) {
  ObjectRef object = args[0];
  int64_t i = args[1];
  if (auto* array = object.as<ArrayNode>()) {
    *rv = array->items.at(i);
  } else if (auto* map = object.as<MapNode>()) {
    const MapNode::Item& item = map->items().at(i / 2);
    *rv = i % 2 ? item.second : item.first;
  } else if (auto* shape = object.as<ShapeTupleObj>()) {
    *rv = GetRef<ShapeTuple>(shape).at(i);
  }
});

}  // namespace runtime
}  // namespace tvm
