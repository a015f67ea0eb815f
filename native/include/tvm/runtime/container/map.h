// Values by key, in the order they were added. A Python dict that reaches C++ code becomes one where it
// is asked for. Keys are text, integers and objects (by identity).
#ifndef TVM_RUNTIME_CONTAINER_MAP_H_
#define TVM_RUNTIME_CONTAINER_MAP_H_

#include <tvm/runtime/packed_func.h>

#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tvm {
namespace runtime {

class TVM_DLL MapNode : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeMap;
  static constexpr const char* _type_key = "Map";
  using Item = std::pair<TVMRetValue, TVMRetValue>;

  const std::vector<Item>& items() const { return items_; }
  // The place of the key among the items, -1 if it is not there.
  int64_t Find(const TVMArgValue& key) const;
  void Set(const TVMArgValue& key, TVMRetValue value);

 private:
  static std::string KeyText(const TVMArgValue& key);

  std::vector<Item> items_;
  std::unordered_map<std::string, size_t> places_;
};

template <class K, class V>
class Map : public ObjectRef {
 public:
  using ContainerType = MapNode;
  using key_type = K;
  using mapped_type = V;

  Map() : ObjectRef(ObjectPtr<Object>(make_object<MapNode>())) {}
  Map(std::nullptr_t) {}
  explicit Map(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  Map(std::initializer_list<std::pair<K, V>> items) : Map() {
    for (const auto& item : items) Set(item.first, item.second);
  }

  size_t size() const { return node() ? node()->items().size() : 0; }
  bool empty() const { return size() == 0; }
  size_t count(const K& key) const { return Place(key) >= 0; }
  V at(const K& key) const {
    int64_t place = Place(key);
    if (place < 0) throw Error("KeyError: the map has no such key");
    return Value(place);
  }
  V operator[](const K& key) const { return at(key); }
  V Get(const K& key, const V& otherwise) const {
    int64_t place = Place(key);
    return place < 0 ? otherwise : Value(place);
  }
  // Changes come after a copy if others hold the map too.
  void Set(const K& key, const V& value) {
    if (data_ == nullptr || !data_.unique()) {
      data_ = ObjectPtr<Object>(node() ? make_object<MapNode>(*node()) : make_object<MapNode>());
    }
    TVMRetValue stored_key, stored_value;
    stored_key = key;
    stored_value = value;
    node()->Set(stored_key, std::move(stored_value));
  }
  std::vector<std::pair<K, V>> items() const {
    std::vector<std::pair<K, V>> result;
    for (size_t i = 0; i < size(); ++i) {
      const TVMRetValue& key = node()->items()[i].first;
      result.emplace_back(detail::ConvertArgument<K>(TVMArgValue(key.value(), key.type_code()), "Map key"),
                          Value(static_cast<int64_t>(i)));
    }
    return result;
  }

 private:
  MapNode* node() const { return static_cast<MapNode*>(data_.get()); }
  int64_t Place(const K& key) const {
    TVMRetValue stored;
    stored = key;
    return node() ? node()->Find(stored) : -1;
  }
  V Value(int64_t place) const {
    const TVMRetValue& value = node()->items()[place].second;
    return detail::ConvertArgument<V>(TVMArgValue(value.value(), value.type_code()), "Map value");
  }
};

}  // namespace runtime
using runtime::Map;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_MAP_H_
