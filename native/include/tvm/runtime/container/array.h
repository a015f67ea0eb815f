// Sequences of values. A Python list or tuple that reaches C++ code becomes one where it is asked for.
//
//     TVM_REGISTER_GLOBAL("my.total").set_body_typed([](Array<int64_t> items) {
//       int64_t total = 0;
//       for (int64_t item : items) total += item;
//       return total;
//     });
#ifndef TVM_RUNTIME_CONTAINER_ARRAY_H_
#define TVM_RUNTIME_CONTAINER_ARRAY_H_

#include <tvm/runtime/packed_func.h>

#include <initializer_list>
#include <iterator>
#include <vector>

namespace tvm {
namespace runtime {

class ArrayNode : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeArray;
  static constexpr const char* _type_key = "Array";
  std::vector<TVMRetValue> items;
};

// Elements convert when they are read: that they are T is checked then.
template <class T>
class Array : public ObjectRef {
 public:
  using ContainerType = ArrayNode;
  using value_type = T;

  Array() : ObjectRef(ObjectPtr<Object>(make_object<ArrayNode>())) {}
  Array(std::nullptr_t) {}
  explicit Array(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  Array(std::initializer_list<T> items) : Array(items.begin(), items.end()) {}
  Array(const std::vector<T>& items) : Array(items.begin(), items.end()) {}  // NOLINT(*)
  explicit Array(size_t count, const T& item) : Array() {
    for (size_t i = 0; i < count; ++i) push_back(item);
  }
  // From an array of what is a T too.
  template <class U, class = std::enable_if_t<std::is_base_of<T, U>::value && !std::is_same<T, U>::value>>
  Array(const Array<U>& other) : ObjectRef(ObjectPtr<Object>(other.get_mutable())) {}  // NOLINT(*)
  template <class It, class = typename std::iterator_traits<It>::iterator_category>
  Array(It first, It last) : Array() {
    for (; first != last; ++first) push_back(*first);
  }

  size_t size() const { return node() ? node()->items.size() : 0; }
  bool empty() const { return size() == 0; }
  T operator[](int64_t i) const {
    if (i < 0 || i >= static_cast<int64_t>(size())) {
      throw Error(Cat("IndexError: index ", i, " is out of range: there are ", size(), " elements"));
    }
    const TVMRetValue& item = node()->items[i];
    return detail::ConvertArgument<T>(TVMArgValue(item.value(), item.type_code(), static_cast<int>(i)), "Array");
  }
  T front() const { return (*this)[0]; }
  T back() const { return (*this)[static_cast<int64_t>(size()) - 1]; }
  // Changes come after a copy if others hold the array too.
  void push_back(const T& item) {
    Own()->items.emplace_back();
    Own()->items.back() = item;
  }
  void Set(int64_t i, const T& item) {
    (*this)[i];
    Own()->items[i] = item;
  }
  void pop_back() {
    if (empty()) throw Error("IndexError: the array is empty");
    Own()->items.pop_back();
  }
  void clear() { Own()->items.clear(); }
  void reserve(int64_t count) { Own()->items.reserve(count); }
  // New elements are null.
  void resize(int64_t count) { Own()->items.resize(count); }
  template <class It>
  void assign(It first, It last) {
    *this = Array(first, last);
  }
  // The array of f(item), for each item.
  template <class F, class U = std::decay_t<std::invoke_result_t<F, T>>>
  Array<U> Map(F f) const {
    Array<U> result;
    for (const T& item : *this) result.push_back(f(item));
    return result;
  }
  template <class F>
  void MutateByApply(F f) {
    *this = Map(f);
  }

  class iterator {
   public:
    using iterator_category = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = int64_t;
    using pointer = const T*;
    using reference = T;
    iterator(const Array* array, int64_t i) : array_(array), i_(i) {}
    T operator*() const { return (*array_)[i_]; }
    T operator[](int64_t n) const { return (*array_)[i_ + n]; }
    iterator& operator++() { return *this += 1; }
    iterator& operator--() { return *this += -1; }
    iterator operator++(int) { return iterator(array_, i_++); }
    iterator operator--(int) { return iterator(array_, i_--); }
    iterator& operator+=(int64_t n) {
      i_ += n;
      return *this;
    }
    iterator operator+(int64_t n) const { return iterator(array_, i_ + n); }
    iterator operator-(int64_t n) const { return iterator(array_, i_ - n); }
    int64_t operator-(const iterator& other) const { return i_ - other.i_; }
    bool operator==(const iterator& other) const { return i_ == other.i_; }
    bool operator!=(const iterator& other) const { return i_ != other.i_; }
    bool operator<(const iterator& other) const { return i_ < other.i_; }

   private:
    const Array* array_;
    int64_t i_;
  };
  iterator begin() const { return iterator(this, 0); }
  iterator end() const { return iterator(this, static_cast<int64_t>(size())); }
  using const_iterator = iterator;
  using reverse_iterator = std::reverse_iterator<iterator>;
  reverse_iterator rbegin() const { return reverse_iterator(end()); }
  reverse_iterator rend() const { return reverse_iterator(begin()); }
  void insert(iterator place, const T& item) {
    TVMRetValue stored;
    stored = item;
    int64_t i = place - begin();
    auto* own = Own();
    own->items.insert(own->items.begin() + i, std::move(stored));
  }
  void erase(iterator place) { erase(place, place + 1); }
  void erase(iterator first, iterator last) {
    int64_t from = first - begin(), to = last - begin();
    auto* own = Own();
    own->items.erase(own->items.begin() + from, own->items.begin() + to);
  }

 private:
  ArrayNode* node() const { return static_cast<ArrayNode*>(data_.get()); }
  ArrayNode* Own() {
    if (data_ == nullptr || !data_.unique()) {
      auto copy = make_object<ArrayNode>();
      if (data_ != nullptr) copy->items = node()->items;
      data_ = ObjectPtr<Object>(std::move(copy));
    }
    return node();
  }
};

}  // namespace runtime
using runtime::Array;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_ARRAY_H_
