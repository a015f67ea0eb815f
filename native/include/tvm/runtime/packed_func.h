// Functions of any arguments: the calling convention between C++, compiled code and other languages.
//
//     PackedFunc add([](TVMArgs args, TVMRetValue* rv) { *rv = int64_t(args[0]) + int64_t(args[1]); });
//     int64_t three = add(1, 2);
#ifndef TVM_RUNTIME_PACKED_FUNC_H_
#define TVM_RUNTIME_PACKED_FUNC_H_

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/error.h>
#include <tvm/runtime/logging.h>
#include <tvm/runtime/ndarray.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace tvm {
namespace runtime {

class TVMRetValue;
class PackedFunc;
class Module;
class ModuleNode;
template <class Signature>
class TypedPackedFunc;

namespace detail {
// Reference classes that values convert to by their kind alone.
template <class T>
using is_known_ref = std::disjunction<std::is_same<ObjectRef, T>, std::is_same<NDArray, T>,
                                      std::is_same<PackedFunc, T>, std::is_same<Module, T>, std::is_same<String, T>>;
// Reference classes that bring `static Ref FromValue(const TVMArgValue&)`.
template <class T, class = void>
struct converts_itself : std::false_type {};
template <class T>
struct converts_itself<T, std::void_t<decltype(&T::FromValue)>> : std::true_type {};
template <class T>
using is_plain_ref = std::conjunction<std::negation<is_known_ref<T>>, std::is_base_of<ObjectRef, T>>;
}  // namespace detail

TVM_DLL const char* ArgTypeCode2Str(int type_code);

// One value and its code, borrowed. Conversions check, and name what was expected and found.
class TVM_DLL TVMArgValue {
 public:
  TVMArgValue() : type_code_(kTVMNullptr) { value_.v_handle = nullptr; }
  // `index` is the argument's place, for messages
  TVMArgValue(TVMValue value, int type_code, int index = -1) : value_(value), type_code_(type_code), index_(index) {}

  const TVMValue& value() const { return value_; }
  int type_code() const { return type_code_; }
  bool is_null() const { return type_code_ == kTVMNullptr; }
  bool is_str() const { return type_code_ == kTVMStr || type_code_ == kTVMBytes; }

  operator int64_t() const;
  operator uint64_t() const { return static_cast<uint64_t>(operator int64_t()); }
  operator int() const;
  operator bool() const;
  operator double() const;
  operator void*() const;
  operator DLTensor*() const;
  operator std::string() const;
  operator String() const;
  operator DLDataType() const;
  operator DataType() const { return operator DLDataType(); }
  operator DLDevice() const;
  operator NDArray() const;
  operator ObjectRef() const;
  operator class PackedFunc() const;
  operator Module() const;
  template <class R, class... A>
  operator TypedPackedFunc<R(A...)>() const;
  // A reference to some kind of object.
  template <class Ref, class = std::enable_if_t<detail::is_plain_ref<Ref>::value>>
  operator Ref() const {
    return AsObjectRef<Ref>();
  }
  template <class Ref>
  Ref AsObjectRef() const;
  // If the caller gave the object away: drops the caller's reference.
  void ReleaseMoved() const {
    if (type_code_ != kTVMObjectRValueRefArg) return;
    auto** slot = static_cast<Object**>(value_.v_handle);
    if (*slot != nullptr) (*slot)->DecRef();
    *slot = nullptr;
  }
  template <class T>
  bool IsObjectRef() const {
    return is_null() || (IsObject() && operator ObjectRef().as<typename T::ContainerType>() != nullptr);
  }

 protected:
  bool IsObject() const {
    return type_code_ == kTVMObjectHandle || type_code_ == kTVMModuleHandle || type_code_ == kTVMPackedFuncHandle ||
           type_code_ == kTVMNDArrayHandle || type_code_ == kTVMObjectRValueRefArg;
  }
  [[noreturn]] void ThrowMismatch(const std::string& expected) const;

  TVMValue value_;
  int type_code_;
  int index_{-1};
};

class TVMArgs {
 public:
  TVMArgs(const TVMValue* values, const int* type_codes, int num_args)
      : values(values), type_codes(type_codes), num_args(num_args) {}
  int size() const { return num_args; }
  TVM_DLL TVMArgValue operator[](int i) const;  // raises if there is no such argument
  template <class T>
  T At(int i) const;

  const TVMValue* values;
  const int* type_codes;
  int num_args;
};

// A value that owns what it holds.
class TVM_DLL TVMRetValue : public TVMArgValue {
 public:
  TVMRetValue() = default;
  TVMRetValue(const TVMRetValue& other) : TVMArgValue() { Assign(other.value_, other.type_code_); }
  TVMRetValue(TVMRetValue&& other) noexcept
      : TVMArgValue(other.value_, other.type_code_), text_(other.text_) {
    other.type_code_ = kTVMNullptr;
    other.text_ = nullptr;
  }
  ~TVMRetValue() { Clear(); }

  TVMRetValue& operator=(TVMRetValue other) noexcept {
    std::swap(value_, other.value_);
    std::swap(type_code_, other.type_code_);
    std::swap(text_, other.text_);
    return *this;
  }
  TVMRetValue& operator=(const TVMArgValue& value) {
    Assign(value.value(), value.type_code());
    return *this;
  }
  TVMRetValue& operator=(int64_t value) { return SetPOD(kTVMArgInt, [&](TVMValue* v) { v->v_int64 = value; }); }
  TVMRetValue& operator=(uint64_t value) { return *this = static_cast<int64_t>(value); }
  TVMRetValue& operator=(int value) { return *this = static_cast<int64_t>(value); }
  TVMRetValue& operator=(bool value) { return SetPOD(kTVMArgBool, [&](TVMValue* v) { v->v_int64 = value; }); }
  TVMRetValue& operator=(double value) { return SetPOD(kTVMArgFloat, [&](TVMValue* v) { v->v_float64 = value; }); }
  TVMRetValue& operator=(void* value) {
    return SetPOD(value ? kTVMOpaqueHandle : kTVMNullptr, [&](TVMValue* v) { v->v_handle = value; });
  }
  TVMRetValue& operator=(std::nullptr_t) { return *this = static_cast<void*>(nullptr); }
  TVMRetValue& operator=(DLDataType value) { return SetPOD(kTVMDataType, [&](TVMValue* v) { v->v_type = value; }); }
  TVMRetValue& operator=(DLDevice value) { return SetPOD(kDLDevice, [&](TVMValue* v) { v->v_device = value; }); }
  TVMRetValue& operator=(const DataType& value) { return *this = DLDataType(value); }
  TVMRetValue& operator=(const char* value) { return *this = std::string(value); }
  TVMRetValue& operator=(const String& value) { return *this = std::string(value); }
  TVMRetValue& operator=(std::string value);
  TVMRetValue& operator=(const TVMByteArray& value);
  TVMRetValue& operator=(NDArray value);
  TVMRetValue& operator=(Module value);
  TVMRetValue& operator=(class PackedFunc value);
  TVMRetValue& operator=(const ObjectRef& value);

  void Assign(TVMValue value, int type_code);
  // Hands the value over to C, except text, which stays with this value.
  void MoveToCHost(TVMValue* value, int* type_code);
  // Takes over a value that compiled code returned.
  static TVMRetValue MoveFromCHost(TVMValue value, int type_code);

 private:
  struct Text {
    std::string data;
    TVMByteArray view;
  };
  template <class F>
  TVMRetValue& SetPOD(int type_code, F set) {
    Clear();
    type_code_ = type_code;
    set(&value_);
    return *this;
  }
  void SetObject(int type_code, ObjectPtr<Object> object);
  void SetText(int type_code, std::string text);
  void Clear();

  Text* text_{nullptr};
};

class PackedFuncObj : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimePackedFunc;
  static constexpr const char* _type_key = "runtime.PackedFunc";
  using Caller = void (*)(PackedFuncObj*, TVMArgs, TVMRetValue*);
  virtual ~PackedFuncObj() = default;

  // The name it is registered under, for messages.
  std::string name;
  Caller caller{nullptr};
  // If set, a packed C function that does the same and may be called without a detour.
  TVMBackendPackedCFunc direct{nullptr};
};

class TVM_DLL PackedFunc : public ObjectRef {
 public:
  using ContainerType = PackedFuncObj;
  PackedFunc() = default;
  PackedFunc(std::nullptr_t) {}
  explicit PackedFunc(ObjectPtr<Object> data) : ObjectRef(std::move(data)) {}
  template <class F, class = std::enable_if_t<std::is_invocable<F, TVMArgs, TVMRetValue*>::value>>
  explicit PackedFunc(F body);

  void CallPacked(TVMArgs args, TVMRetValue* rv) const {
    PackedFuncObj* callee = func();
    if (callee == nullptr || callee->caller == nullptr) ThrowNoBody();
    callee->caller(callee, args, rv);
  }
  template <class... Args>
  TVMRetValue operator()(Args&&... args) const;
  bool operator==(std::nullptr_t) const { return !defined(); }
  bool operator!=(std::nullptr_t) const { return defined(); }
  PackedFuncObj* func() const { return static_cast<PackedFuncObj*>(data_.get()); }

 private:
  [[noreturn]] static void ThrowNoBody();
};

template <class F>
class PackedFuncClosure : public PackedFuncObj {
 public:
  explicit PackedFuncClosure(F body) : body_(std::move(body)) {
    caller = [](PackedFuncObj* self, TVMArgs args, TVMRetValue* rv) {
      static_cast<PackedFuncClosure*>(self)->body_(args, rv);
    };
  }

 private:
  F body_;
};

template <class F, class>
PackedFunc::PackedFunc(F body) : PackedFunc(ObjectPtr<PackedFuncObj>(make_object<PackedFuncClosure<F>>(std::move(body)))) {}

// Fills the argument arrays of a call; text and objects are borrowed for its duration.
class TVMArgsSetter {
 public:
  TVMArgsSetter(TVMValue* values, int* type_codes) : values_(values), type_codes_(type_codes) {}

  template <class T, class = std::enable_if_t<std::is_integral<T>::value>>
  void operator()(size_t i, T value) const {
    values_[i].v_int64 = static_cast<int64_t>(value);
    type_codes_[i] = std::is_same<T, bool>::value ? kTVMArgBool : kTVMArgInt;
  }
  void operator()(size_t i, double value) const {
    values_[i].v_float64 = value;
    type_codes_[i] = kTVMArgFloat;
  }
  void operator()(size_t i, std::nullptr_t) const { Handle(i, nullptr, kTVMNullptr); }
  void operator()(size_t i, void* value) const { Handle(i, value, value ? kTVMOpaqueHandle : kTVMNullptr); }
  void operator()(size_t i, DLTensor* value) const { Handle(i, value, kTVMDLTensorHandle); }
  void operator()(size_t i, const char* value) const {
    values_[i].v_str = value;
    type_codes_[i] = kTVMStr;
  }
  void operator()(size_t i, const std::string& value) const { (*this)(i, value.c_str()); }
  void operator()(size_t i, const String& value) const { (*this)(i, value.c_str()); }
  void operator()(size_t i, const TVMByteArray& value) const {
    Handle(i, const_cast<TVMByteArray*>(&value), kTVMBytes);
  }
  void operator()(size_t i, DLDataType value) const {
    values_[i].v_type = value;
    type_codes_[i] = kTVMDataType;
  }
  void operator()(size_t i, const DataType& value) const { (*this)(i, DLDataType(value)); }
  void operator()(size_t i, DLDevice value) const {
    values_[i].v_device = value;
    type_codes_[i] = kDLDevice;
  }
  void operator()(size_t i, const NDArray& value) const {
    Handle(i, value.defined() ? value.tensor() : nullptr, value.defined() ? kTVMNDArrayHandle : kTVMNullptr);
  }
  void operator()(size_t i, const PackedFunc& value) const { Ref(i, value, kTVMPackedFuncHandle); }
  TVM_DLL void operator()(size_t i, const Module& value) const;
  TVM_DLL void operator()(size_t i, const ObjectRef& value) const;
  void operator()(size_t i, const TVMArgValue& value) const {
    values_[i] = value.value();
    type_codes_[i] = value.type_code();
  }

 private:
  void Handle(size_t i, void* value, int type_code) const {
    values_[i].v_handle = value;
    type_codes_[i] = type_code;
  }
  void Ref(size_t i, const ObjectRef& value, int type_code) const {
    Handle(i, value.get_mutable(), value.defined() ? type_code : kTVMNullptr);
  }
  TVMValue* values_;
  int* type_codes_;
};

template <class... Args>
TVMRetValue PackedFunc::operator()(Args&&... args) const {
  constexpr size_t count = sizeof...(Args);
  TVMValue values[count + 1];
  int type_codes[count + 1];
  TVMArgsSetter set(values, type_codes);
  [[maybe_unused]] size_t i = 0;  // there may be no arguments
  (set(i++, std::forward<Args>(args)), ...);
  TVMRetValue rv;
  CallPacked(TVMArgs(values, type_codes, static_cast<int>(count)), &rv);
  return rv;
}

namespace detail {

template <class T>
T As(const TVMArgValue& value) {
  if constexpr (std::is_base_of<TVMArgValue, T>::value) {
    T copy;
    copy = value;
    return copy;
  } else if constexpr (std::is_class<T>::value) {
    return value.operator T();
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
T ConvertArgument(const TVMArgValue& value, const std::string& name) {
  try {
    T argument = As<T>(value);
    if constexpr (std::is_base_of<ObjectRef, T>::value) value.ReleaseMoved();
    return argument;
  } catch (const ArgumentError& error) {
    throw error.In(name);
  }
}

// The plain function type R(A...) of a function, a lambda or a function object.
template <class F>
struct Signature : Signature<decltype(&F::operator())> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...) const> : Signature<R(A...)> {};
template <class R, class C, class... A>
struct Signature<R (C::*)(A...)> : Signature<R(A...)> {};
template <class R, class... A>
struct Signature<R (*)(A...)> : Signature<R(A...)> {};
template <class R, class... A>
struct Signature<R(A...)> {
  using type = R(A...);
  template <class F, size_t... I>
  static void Call(F& f, const std::string& name, const TVMArgs& args, TVMRetValue* rv, std::index_sequence<I...>) {
    if constexpr (std::is_void<R>::value) {
      f(ConvertArgument<std::decay_t<A>>(args[I], name)...);
    } else {
      *rv = f(ConvertArgument<std::decay_t<A>>(args[I], name)...);
    }
  }
  template <class F>
  static void Call(F& f, const std::string& name, const TVMArgs& args, TVMRetValue* rv) {
    if (args.num_args != static_cast<int>(sizeof...(A))) {
      ThrowTypeError(name, " takes ", sizeof...(A), " arguments, got ", args.num_args);
    }
    Call(f, name, args, rv, std::index_sequence_for<A...>());
  }
};

}  // namespace detail

// A packed function whose parameters and result have types.
template <class R, class... A>
class TypedPackedFunc<R(A...)> {
 public:
  TypedPackedFunc() = default;
  TypedPackedFunc(std::nullptr_t) {}
  TypedPackedFunc(PackedFunc packed) : packed_(std::move(packed)) {}
  // From a function or lambda; `name` is for messages.
  template <class F, class = std::enable_if_t<std::is_invocable<F&, A...>::value>>
  TypedPackedFunc(F f, std::string name = "the function")
      : packed_([f, name](TVMArgs args, TVMRetValue* rv) mutable {
          detail::Signature<R(A...)>::Call(f, name, args, rv);
        }) {}

  R operator()(A... args) const {
    TVMRetValue result = packed_(std::forward<A>(args)...);
    if constexpr (!std::is_void<R>::value) return detail::As<std::decay_t<R>>(result);
  }
  const PackedFunc& packed() const { return packed_; }
  operator PackedFunc() const { return packed_; }
  bool operator==(std::nullptr_t) const { return packed_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return packed_ != nullptr; }

 private:
  PackedFunc packed_;
};

template <class T>
T TVMArgs::At(int i) const {
  return detail::As<T>((*this)[i]);
}

template <class F>
TypedPackedFunc(F) -> TypedPackedFunc<typename detail::Signature<F>::type>;
template <class F>
TypedPackedFunc(F, std::string) -> TypedPackedFunc<typename detail::Signature<F>::type>;

template <class R, class... A>
TVMArgValue::operator TypedPackedFunc<R(A...)>() const {
  return TypedPackedFunc<R(A...)>(operator PackedFunc());
}

// The array or map with the contents of a container of another language; anything else as it is.
TVM_DLL ObjectRef AsNativeContainer(const ObjectRef& foreign);
// The shape that an array of integers tells; anything else as it is.
TVM_DLL ObjectRef AsShapeTuple(const ObjectRef& integers);

template <class Ref>
Ref TVMArgValue::AsObjectRef() const {
  using T = typename Ref::ContainerType;
  if constexpr (detail::converts_itself<Ref>::value) return Ref::FromValue(*this);
  ObjectRef ref;
  bool is_text = std::is_same<T, StringObj>::value && is_str();
  if (is_null() ? !Ref::_type_is_nullable : !IsObject() && !is_text) ThrowMismatch(Object::TypeIndex2Key(TypeIndexOf<T>()));
  ref = operator ObjectRef();
  if constexpr (T::kTypeIndex == kRuntimeArray || T::kTypeIndex == kRuntimeMap) {
    if (ref.defined() && ref.get()->type_index() == kRuntimeForeign) ref = AsNativeContainer(ref);
  }
  if constexpr (T::kTypeIndex == kRuntimeShapeTuple) {
    if (ref.defined()) ref = AsShapeTuple(ref);
  }
  if (ref.defined() && !ref.get()->template IsInstance<T>()) ThrowMismatch(Object::TypeIndex2Key(TypeIndexOf<T>()));
  return Ref(ObjectPtr<Object>(ref.get_mutable()));
}

// A packed function that calls compiled code, and keeps `owner` (its module) alive.
TVM_DLL PackedFunc WrapPackedCFunc(TVMBackendPackedCFunc address, ObjectPtr<Object> owner);

}  // namespace runtime
}  // namespace tvm

#include <tvm/runtime/container/adt.h>
#include <tvm/runtime/container/array.h>
#include <tvm/runtime/container/boxed_primitive.h>
#include <tvm/runtime/container/map.h>
#include <tvm/runtime/dso_export.h>
#include <tvm/runtime/module.h>
#endif  // TVM_RUNTIME_PACKED_FUNC_H_
