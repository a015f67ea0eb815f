// Shapes as objects. A list or tuple of integers of another language becomes one where it is asked for.
#ifndef TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_
#define TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_

#include <tvm/runtime/object.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <stdexcept>
#include <vector>

namespace tvm {
namespace runtime {

class ShapeTupleObj : public Object {
 public:
  using index_type = int64_t;
  static constexpr uint32_t kTypeIndex = kRuntimeShapeTuple;
  static constexpr const char* _type_key = "runtime.ShapeTuple";
  explicit ShapeTupleObj(std::vector<index_type> extents)
      : extents_(std::move(extents)), data(extents_.data()), size(extents_.size()) {}
  ShapeTupleObj(const ShapeTupleObj&) = delete;
  // How many elements an array of this shape has.
  index_type Product() const {
    index_type product = 1;
    for (index_type extent : extents_) product *= extent;
    return product;
  }

 private:
  std::vector<index_type> extents_;

 public:
  index_type* data;
  uint64_t size;
};

class ShapeTuple : public ObjectRef {
 public:
  using ContainerType = ShapeTupleObj;
  using index_type = ShapeTupleObj::index_type;
  static constexpr bool _type_is_nullable = false;

  ShapeTuple() : ShapeTuple(std::vector<index_type>()) {}
  ShapeTuple(std::vector<index_type> extents)  // NOLINT(*)
      : ObjectRef(ObjectPtr<Object>(make_object<ShapeTupleObj>(std::move(extents)))) {}
  ShapeTuple(std::initializer_list<index_type> extents) : ShapeTuple(std::vector<index_type>(extents)) {}
  template <class It, class = std::enable_if_t<!std::is_integral<It>::value>>
  ShapeTuple(It first, It last) : ShapeTuple(std::vector<index_type>(first, last)) {}
  explicit ShapeTuple(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}

  const ShapeTupleObj* operator->() const { return node(); }
  const ShapeTupleObj* get() const { return node(); }
  const index_type* data() const { return node()->data; }
  size_t size() const { return node()->size; }
  bool empty() const { return size() == 0; }
  const index_type* begin() const { return data(); }
  const index_type* end() const { return data() + size(); }
  index_type operator[](size_t i) const { return at(i); }
  index_type at(size_t i) const {
    if (i >= size()) throw std::out_of_range("a shape has no such axis");
    return data()[i];
  }
  index_type front() const { return at(0); }
  index_type back() const { return at(size() - 1); }
  bool operator==(const ShapeTuple& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }
  bool operator!=(const ShapeTuple& other) const { return !(*this == other); }

 private:
  const ShapeTupleObj* node() const { return static_cast<const ShapeTupleObj*>(data_.get()); }
};

inline std::ostream& operator<<(std::ostream& os, const ShapeTuple& shape) {
  os << '[';
  for (size_t i = 0; i < shape.size(); ++i) os << (i == 0 ? "" : ", ") << shape[i];
  return os << ']';
}

}  // namespace runtime
using runtime::ShapeTuple;
using runtime::ShapeTupleObj;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_
