// Arrays and maps of C++ code, and their way to and from other languages' containers.
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
  auto* foreign = object.as<ForeignObj>();
  return Cat("o", foreign ? foreign->foreign : static_cast<const void*>(object.get()));
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

ObjectRef AsNativeContainer(const ObjectRef& foreign) {
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
  spread(foreign, make_array, make_map);
  return result;
}

TVM_REGISTER_GLOBAL("runtime.NativeSize").set_body_typed([](ObjectRef object) {
  if (auto* array = object.as<ArrayNode>()) return static_cast<int64_t>(array->items.size());
  if (auto* map = object.as<MapNode>()) return static_cast<int64_t>(map->items().size());
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
  }
});

}  // namespace runtime
}  // namespace tvm
