// A reference or none.
//
//     Optional<String> name = NullOpt;
//     std::string text = name.value_or("unnamed");
#ifndef TVM_RUNTIME_CONTAINER_OPTIONAL_H_
#define TVM_RUNTIME_CONTAINER_OPTIONAL_H_

#include <tvm/runtime/error.h>

#include <type_traits>
#include <utility>

namespace tvm {
namespace runtime {

class TVMArgValue;

struct NullOptType {};
constexpr NullOptType NullOpt{};

template <class T>
class Optional : public ObjectRef {
 public:
  static_assert(std::is_base_of<ObjectRef, T>::value, "Optional is for references to objects");
  using ContainerType = typename T::ContainerType;
  static constexpr bool _type_is_nullable = true;

  Optional() = default;
  Optional(NullOptType) {}       // NOLINT(*)
  Optional(std::nullptr_t) {}    // NOLINT(*)
  Optional(T value) : ObjectRef(ObjectPtr<Object>(value.get_mutable())) {}  // NOLINT(*)
  explicit Optional(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  // From what a T is made of: Optional<String> name = "x".
  template <class U, class = std::enable_if_t<std::is_convertible<U, T>::value && !std::is_base_of<ObjectRef, std::decay_t<U>>::value &&
                                              !std::is_base_of<TVMArgValue, std::decay_t<U>>::value &&
                                              !std::is_same<std::decay_t<U>, std::nullptr_t>::value>>
  Optional(U&& value) : Optional(T(std::forward<U>(value))) {}  // NOLINT(*)

  bool has_value() const { return defined(); }
  explicit operator bool() const { return defined(); }
  T value() const {
    if (!defined()) throw Error("ValueError: the Optional holds no value");
    return T(data_);
  }
  T value_or(T otherwise) const { return defined() ? T(data_) : otherwise; }
  const ContainerType* get() const { return static_cast<const ContainerType*>(data_.get()); }
  const ContainerType* operator->() const { return get(); }

  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }
  // As two Ts compare; nothing equals nothing alone.
  bool operator==(const Optional& other) const {
    return defined() && other.defined() ? static_cast<bool>(value() == other.value()) : defined() == other.defined();
  }
  bool operator!=(const Optional& other) const { return !(*this == other); }
  template <class U, class = std::enable_if_t<std::is_convertible<U, T>::value>>
  bool operator==(const U& other) const {
    return defined() && value() == other;
  }
  template <class U, class = std::enable_if_t<std::is_convertible<U, T>::value>>
  bool operator!=(const U& other) const {
    return !(*this == other);
  }
};

template <class Ref, class, class>
Optional<Ref> ObjectRef::as() const {
  bool is_one = data_ != nullptr && data_->IsInstance<typename Ref::ContainerType>();
  return is_one ? Optional<Ref>(data_) : Optional<Ref>(NullOpt);
}

}  // namespace runtime
using runtime::NullOpt;
using runtime::NullOptType;
using runtime::Optional;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_OPTIONAL_H_
