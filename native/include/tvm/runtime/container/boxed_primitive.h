// Numbers and truth values as objects. Functions, arrays and maps hold them unboxed; whoever asks for an object gets a box.
//
//     Array<Int> sizes = {1, 2};
//     Map<String, ObjectRef> options = {{"depth", Int(3)}, {"fast", Bool(true)}};
#ifndef TVM_RUNTIME_CONTAINER_BOXED_PRIMITIVE_H_
#define TVM_RUNTIME_CONTAINER_BOXED_PRIMITIVE_H_

#include <tvm/runtime/packed_func.h>

namespace tvm {
namespace runtime {

template <class T>
class PrimitiveNode : public Object {
 public:
  explicit PrimitiveNode(T value) : value(value) {}
  T value;
  static constexpr const char* _type_key = std::is_same<T, bool>::value       ? "runtime.BoxBool"
                                           : std::is_same<T, double>::value ? "runtime.BoxFloat"
                                                                            : "runtime.BoxInt";
  TVM_DECLARE_FINAL_OBJECT_INFO(PrimitiveNode, Object);
};

template <class T>
class Primitive : public ObjectRef {
 public:
  using ContainerType = PrimitiveNode<T>;
  static constexpr bool _type_is_nullable = false;

  Primitive(T value) : ObjectRef(ObjectPtr<Object>(make_object<PrimitiveNode<T>>(value))) {}  // NOLINT(*)
  explicit Primitive(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  operator T() const { return get()->value; }
  const PrimitiveNode<T>* get() const { return static_cast<const PrimitiveNode<T>*>(data_.get()); }
  const PrimitiveNode<T>* operator->() const { return get(); }
  bool operator==(const Primitive& other) const { return get()->value == other.get()->value; }
  bool operator!=(const Primitive& other) const { return !(*this == other); }

  static Primitive FromValue(const TVMArgValue& value) { return value.operator T(); }
};

using Bool = Primitive<bool>;
using Int = Primitive<int64_t>;
using Float = Primitive<double>;

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_BOXED_PRIMITIVE_H_
