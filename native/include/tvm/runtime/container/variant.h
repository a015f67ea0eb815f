// A reference to an object of one of several kinds.
//
//     TVM_REGISTER_GLOBAL("my.size").set_body_typed([](Variant<String, Array<ObjectRef>> value) {
//       if (auto text = value.as<String>()) return static_cast<int64_t>(text.value().size());
//       return static_cast<int64_t>(value.get<Array<ObjectRef>>().size());
//     });
#ifndef TVM_RUNTIME_CONTAINER_VARIANT_H_
#define TVM_RUNTIME_CONTAINER_VARIANT_H_

#include <tvm/runtime/container/optional.h>
#include <tvm/runtime/packed_func.h>

namespace tvm {
namespace runtime {

template <class... V>
class Variant : public ObjectRef {
  static_assert(std::conjunction<std::is_base_of<ObjectRef, V>...>::value, "Variant is for references to objects");
  template <class T>
  static constexpr bool kHolds = std::disjunction<std::is_base_of<V, T>...>::value;

 public:
  static constexpr bool _type_is_nullable = (V::_type_is_nullable || ...);

  explicit Variant(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {
    bool is_allowed = defined() ? (IsA<V>() || ...) : _type_is_nullable;
    if (!is_allowed) ThrowTypeError("a variant expected ", Names(), ", got ", ForeignTypeName(get()));
  }
  template <class T, class = std::enable_if_t<kHolds<T>>>
  Variant(T value) : ObjectRef(ObjectPtr<Object>(value.get_mutable())) {}  // NOLINT(*)

  // The value as a T, or none.
  template <class T, class = std::enable_if_t<kHolds<T>>>
  Optional<T> as() const {
    return defined() && IsA<T>() ? Optional<T>(data_) : Optional<T>(NullOpt);
  }
  template <class T, class = std::enable_if_t<!std::is_base_of<ObjectRef, T>::value>, class = void>
  T* as() const {
    return ObjectRef::as<T>();
  }
  // The same, raising TypeError if it is none.
  template <class T, class = std::enable_if_t<kHolds<T>>>
  T get() const {
    return Downcast<T>(*this);
  }
  using ObjectRef::get;

  // The first of the kinds that the value converts to.
  static Variant FromValue(const TVMArgValue& value) {
    Optional<ObjectRef> found;
    (Try<V>(value, &found) || ...);
    if (!found.defined() && !(value.is_null() && _type_is_nullable)) {
      value.AsObjectRef<ObjectRef>();  // says what came, if it is no object at all
      ThrowTypeError("a variant expected ", Names(), ", got ", ForeignTypeName(value.operator ObjectRef().get()));
    }
    return Variant(ObjectPtr<Object>(found.get_mutable()));
  }

 private:
  template <class T>
  bool IsA() const {
    return data_->template IsInstance<typename T::ContainerType>();
  }

  template <class T>
  static bool Try(const TVMArgValue& value, Optional<ObjectRef>* found) {
    try {
      *found = ObjectRef(detail::As<T>(value));
      return found->defined();
    } catch (const Error&) {
      return false;
    }
  }

  static std::string Names() {
    std::string names;
    ((names += (names.empty() ? "" : " or ") + Object::TypeIndex2Key(TypeIndexOf<typename V::ContainerType>())), ...);
    return names;
  }
};

}  // namespace runtime
using runtime::Variant;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_VARIANT_H_
