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
  bool Erase(const TVMArgValue& key);  // false if there is no such key

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

  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  Map(It first, It last) : Map() {
    for (; first != last; ++first) Set((*first).first, (*first).second);
  }
  template <class Hash, class Equal>
  Map(const std::unordered_map<K, V, Hash, Equal>& items) : Map(items.begin(), items.end()) {}  // NOLINT(*)

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
  Optional<V> Get(const K& key) const {
    int64_t place = Place(key);
    return place < 0 ? Optional<V>() : Optional<V>(Value(place));
  }
  void Set(const K& key, const V& value) {
    TVMRetValue stored_key, stored_value;
    stored_key = key;
    stored_value = value;
    Own()->Set(stored_key, std::move(stored_value));
  }
  void erase(const K& key) {
    TVMRetValue stored;
    stored = key;
    Own()->Erase(stored);
  }
  void clear() { data_ = ObjectPtr<Object>(make_object<MapNode>()); }
  std::vector<std::pair<K, V>> items() const { return std::vector<std::pair<K, V>>(begin(), end()); }

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = std::pair<K, V>;
    using difference_type = int64_t;
    using reference = value_type;
    // Keeps the pair that -> shows.
    struct pointer {
      value_type item;
      const value_type* operator->() const { return &item; }
    };
    iterator(const Map* map, int64_t i) : map_(map), i_(i) {}
    value_type operator*() const { return map_->Item(i_); }
    pointer operator->() const { return pointer{**this}; }
    iterator& operator++() {
      ++i_;
      return *this;
    }
    iterator operator++(int) { return iterator(map_, i_++); }
    bool operator==(const iterator& other) const { return i_ == other.i_; }
    bool operator!=(const iterator& other) const { return i_ != other.i_; }

   private:
    const Map* map_;
    int64_t i_;
  };
  using const_iterator = iterator;
  iterator begin() const { return iterator(this, 0); }
  iterator end() const { return iterator(this, static_cast<int64_t>(size())); }
  iterator find(const K& key) const {
    int64_t place = Place(key);
    return place < 0 ? end() : iterator(this, place);
  }

 private:
  MapNode* node() const { return static_cast<MapNode*>(data_.get()); }
  // Changes come after a copy if others hold the map too.
  MapNode* Own() {
    if (data_ == nullptr || !data_.unique()) {
      data_ = ObjectPtr<Object>(node() ? make_object<MapNode>(*node()) : make_object<MapNode>());
    }
    return node();
  }
  std::pair<K, V> Item(int64_t place) const {
    const TVMRetValue& key = node()->items()[place].first;
    return {detail::ConvertArgument<K>(TVMArgValue(key.value(), key.type_code()), "Map key"), Value(place)};
  }
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

// The items of both; where a key is in both, the second's.
template <class K, class V>
Map<K, V> Merge(Map<K, V> first, const Map<K, V>& second) {
  for (const auto& item : second) first.Set(item.first, item.second);
  return first;
}

}  // namespace runtime
using runtime::Map;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_MAP_H_
