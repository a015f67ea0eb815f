// Reference-counted objects, and how a library declares kinds of its own.
//
//     class PointNode : public Object {
//      public:
//       int64_t x, y;
//       void VisitAttrs(AttrVisitor* v) { v->Visit("x", &x); v->Visit("y", &y); }  // tvm/node/reflection.h
//       static constexpr const char* _type_key = "my.Point";
//       TVM_DECLARE_FINAL_OBJECT_INFO(PointNode, Object);
//     };
//     class Point : public ObjectRef {
//      public:
//       TVM_DEFINE_OBJECT_REF_METHODS(Point, ObjectRef, PointNode);
//     };
//     TVM_REGISTER_OBJECT_TYPE(PointNode);
//
// The layout of the header (type index, count, deleter) is that of the classic runtime.
#ifndef TVM_RUNTIME_OBJECT_H_
#define TVM_RUNTIME_OBJECT_H_

#include <tvm/runtime/c_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace tvm {
namespace runtime {

enum TypeIndex : uint32_t {
  kRuntimeObject = 0,
  kRuntimeModule = 1,
  kRuntimeNDArray = 2,
  kRuntimeString = 3,
  kRuntimeArray = 4,
  kRuntimeMap = 5,
  kRuntimeShapeTuple = 6,
  kRuntimePackedFunc = 7,
  kRuntimeForeign = 8,
  kStaticIndexEnd = 64,
  // the kind's index is given out at run time, by its type key
  kDynamicIndex = 0xFFFFFFFF,
};

template <class T, class... Unused>
class ObjectPtr;
template <class Ref>
class Optional;

class Object {
 public:
  using Deleter = void (*)(Object*);
  using FDeleter = Deleter;
  static constexpr const char* _type_key = "runtime.Object";
  static constexpr uint32_t kTypeIndex = kRuntimeObject;
  static uint32_t RuntimeTypeIndex() { return kRuntimeObject; }

  uint32_t type_index() const { return type_index_; }
  std::string GetTypeKey() const { return TypeIndex2Key(type_index_); }
  int use_count() const { return ref_counter_.load(std::memory_order_relaxed); }
  bool unique() const { return use_count() == 1; }
  // Whether this is a T or of a kind that is declared below it.
  template <class T>
  bool IsInstance() const;

  void IncRef() { ref_counter_.fetch_add(1, std::memory_order_relaxed); }
  // For those who hold no reference: fails if the object is about to be freed.
  bool TryIncRef() {
    int32_t count = ref_counter_.load(std::memory_order_relaxed);
    while (count > 0 && !ref_counter_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) {
    }
    return count > 0;
  }
  void DecRef() {
    if (ref_counter_.fetch_sub(1, std::memory_order_acq_rel) == 1 && deleter_ != nullptr) deleter_(this);
  }

  // The index of a type key, made on first use; the key of an index, empty if there is none.
  TVM_DLL static uint32_t TypeKey2Index(const std::string& key);
  TVM_DLL static std::string TypeIndex2Key(uint32_t index);
  // The index of a kind whose parent kind is known.
  TVM_DLL static uint32_t DeclareType(const char* key, uint32_t parent);
  TVM_DLL static bool IsDerived(uint32_t index, uint32_t ancestor);

  Object() = default;

 protected:
  Object(const Object&) {}
  Object& operator=(const Object&) { return *this; }

  uint32_t type_index_{kRuntimeObject};
  std::atomic<int32_t> ref_counter_{0};
  Deleter deleter_{nullptr};

  template <class T, class... Args>
  friend class ObjectPtr;
  template <class T, class... Args>
  friend T* NewObject(Args&&... args);
};

// The index of a kind: fixed for the runtime's own, given out by type key for others.
template <class T>
uint32_t TypeIndexOf() {
  return T::kTypeIndex == kDynamicIndex ? T::RuntimeTypeIndex() : T::kTypeIndex;
}

template <class T>
bool Object::IsInstance() const {
  return type_index_ == TypeIndexOf<T>() || std::is_same<T, Object>::value ||
         IsDerived(type_index_, TypeIndexOf<T>());
}

// Allocates an object with no reference yet.
template <class T, class... Args>
T* NewObject(Args&&... args) {
  T* object = new T(std::forward<Args>(args)...);
  object->type_index_ = TypeIndexOf<T>();
  object->deleter_ = [](Object* self) { delete static_cast<T*>(self); };
  return object;
}

template <class T, class... Unused>
class ObjectPtr {
 public:
  using element_type = T;
  ObjectPtr() = default;
  ObjectPtr(std::nullptr_t) {}
  explicit ObjectPtr(T* data) : data_(data) {
    if (data_) data_->IncRef();
  }
  ObjectPtr(const ObjectPtr& other) : ObjectPtr(other.data_) {}
  ObjectPtr(ObjectPtr&& other) noexcept : data_(other.data_) { other.data_ = nullptr; }
  template <class U, class = std::enable_if_t<std::is_base_of<T, U>::value>>
  ObjectPtr(const ObjectPtr<U>& other) : ObjectPtr(other.get()) {}
  ~ObjectPtr() {
    if (data_) data_->DecRef();
  }
  ObjectPtr& operator=(ObjectPtr other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }

  T* get() const { return data_; }
  T* operator->() const { return data_; }
  T& operator*() const { return *data_; }
  explicit operator bool() const { return data_ != nullptr; }
  bool operator==(std::nullptr_t) const { return data_ == nullptr; }
  bool operator!=(std::nullptr_t) const { return data_ != nullptr; }
  bool operator==(const ObjectPtr& other) const { return data_ == other.data_; }
  bool operator!=(const ObjectPtr& other) const { return data_ != other.data_; }
  int use_count() const { return data_ ? data_->use_count() : 0; }
  bool unique() const { return use_count() == 1; }
  void reset() { *this = nullptr; }

  // Gives the reference away; the receiver must drop it.
  T* release() {
    T* data = data_;
    data_ = nullptr;
    return data;
  }
  // Takes over a reference that was given away.
  static ObjectPtr Adopt(T* data) {
    ObjectPtr result;
    result.data_ = data;
    return result;
  }

 private:
  T* data_{nullptr};
};

template <class T, class... Args>
ObjectPtr<T> make_object(Args&&... args) {
  return ObjectPtr<T>(NewObject<T>(std::forward<Args>(args)...));
}

// Handles are always pointers to the Object part.
template <class T>
T* FromHandle(void* handle) {
  return static_cast<T*>(static_cast<Object*>(handle));
}

class ObjectRef {
 public:
  using ContainerType = Object;
  static constexpr bool _type_is_nullable = true;

  ObjectRef() = default;
  explicit ObjectRef(ObjectPtr<Object> data) : data_(std::move(data)) {}

  bool defined() const { return data_ != nullptr; }
  const Object* get() const { return data_.get(); }
  Object* get_mutable() const { return data_.get(); }
  const Object* operator->() const { return get(); }
  bool same_as(const ObjectRef& other) const { return data_.get() == other.data_.get(); }
  bool operator==(const ObjectRef& other) const { return same_as(other); }
  bool operator!=(const ObjectRef& other) const { return !same_as(other); }
  bool operator<(const ObjectRef& other) const { return get() < other.get(); }
  bool unique() const { return data_.unique(); }
  int use_count() const { return data_.use_count(); }
  // The object if it is a T, else null.
  template <class T, class = std::enable_if_t<std::is_base_of<Object, T>::value>>
  T* as() const {
    return data_ && data_->IsInstance<T>() ? static_cast<T*>(data_.get()) : nullptr;
  }
  // The same for a kind of reference; in tvm/runtime/container/optional.h.
  template <class Ref, class = std::enable_if_t<std::is_base_of<ObjectRef, Ref>::value>, class = void>
  Optional<Ref> as() const;

 protected:
  ObjectPtr<Object> data_;
};

struct ObjectPtrHash {
  size_t operator()(const ObjectRef& ref) const { return std::hash<const void*>()(ref.get()); }
};

struct ObjectPtrEqual {
  bool operator()(const ObjectRef& a, const ObjectRef& b) const { return a.same_as(b); }
};

// A reference to an object that is held by somebody else already.
template <class Ref, class T>
Ref GetRef(const T* object) {
  return Ref(ObjectPtr<Object>(const_cast<Object*>(static_cast<const Object*>(object))));
}

template <class T, class U>
ObjectPtr<T> GetObjectPtr(U* object) {
  return ObjectPtr<T>(static_cast<T*>(object));
}

[[noreturn]] TVM_DLL void ThrowBadDowncast(const Object* found, uint32_t expected);
// What -> of a reference without an object throws.
[[noreturn]] TVM_DLL void ThrowNullReference(const char* expected);

// The reference as one to a T; raises TypeError if the object is none.
template <class Ref>
Ref Downcast(const ObjectRef& ref) {
  using T = typename Ref::ContainerType;
  if (ref.defined() ? !ref.get()->template IsInstance<T>() : !Ref::_type_is_nullable) {
    ThrowBadDowncast(ref.get(), TypeIndexOf<T>());
  }
  return Ref(ObjectPtr<Object>(ref.get_mutable()));
}

// An object of another language.
class ForeignObj : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeForeign;
  ForeignObj(void* foreign, void (*fin)(void*)) : foreign(foreign), fin(fin) {}
  ~ForeignObj() {
    if (fin) fin(foreign);
  }
  void* foreign;
  void (*fin)(void*);
};

// What messages call an object: its type key, or the type it has in its own language.
TVM_DLL std::string ForeignTypeName(const Object* object);

#define TVM_OBJECT_CONCAT_(a, b) a##b
#define TVM_OBJECT_CONCAT(a, b) TVM_OBJECT_CONCAT_(a, b)

// Inside a kind of object that has a `_type_key`: the kind's index, and the kind above it.
#define TVM_DECLARE_BASE_OBJECT_INFO(TypeName, ParentType)                                               \
  static constexpr uint32_t kTypeIndex = ::tvm::runtime::kDynamicIndex;                                  \
  static uint32_t RuntimeTypeIndex() {                                                                   \
    static_assert(std::is_base_of<ParentType, TypeName>::value, #ParentType " is the parent's name");    \
    static const uint32_t index =                                                                        \
        ::tvm::runtime::Object::DeclareType(TypeName::_type_key, ::tvm::runtime::TypeIndexOf<ParentType>()); \
    return index;                                                                                        \
  }
#define TVM_DECLARE_FINAL_OBJECT_INFO(TypeName, ParentType) TVM_DECLARE_BASE_OBJECT_INFO(TypeName, ParentType)

// In one source file: makes the kind known as soon as its library is loaded.
#define TVM_REGISTER_OBJECT_TYPE(TypeName)                                                          \
  static __attribute__((unused)) uint32_t TVM_OBJECT_CONCAT(tvm_object_type_, __COUNTER__) = \
      TypeName::RuntimeTypeIndex()

#define TVM_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(TypeName) \
  TypeName(const TypeName&) = default;                    \
  TypeName(TypeName&&) = default;                         \
  TypeName& operator=(const TypeName&) = default;         \
  TypeName& operator=(TypeName&&) = default;

#define TVM_OBJECT_REF_METHODS_(TypeName, ParentType, ObjectName, Pointer)                                  \
  explicit TypeName(::tvm::runtime::ObjectPtr<::tvm::runtime::Object> data) : ParentType(std::move(data)) {} \
  TVM_DEFINE_DEFAULT_COPY_MOVE_AND_ASSIGN(TypeName)                                                         \
  Pointer operator->() const {                                                                              \
    if (data_ == nullptr) ::tvm::runtime::ThrowNullReference(#TypeName);                                    \
    return get();                                                                                           \
  }                                                                                                         \
  Pointer get() const { return static_cast<Pointer>(data_.get()); }                                         \
  using ContainerType = ObjectName;

// Inside a reference class: constructors and access to the object.
#define TVM_DEFINE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TypeName() = default;                                                 \
  TVM_OBJECT_REF_METHODS_(TypeName, ParentType, ObjectName, const ObjectName*)
#define TVM_DEFINE_MUTABLE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TypeName() = default;                                                         \
  TVM_OBJECT_REF_METHODS_(TypeName, ParentType, ObjectName, ObjectName*)
// The reference is never null.
#define TVM_DEFINE_NOTNULLABLE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TVM_OBJECT_REF_METHODS_(TypeName, ParentType, ObjectName, const ObjectName*)      \
  static constexpr bool _type_is_nullable = false;
#define TVM_DEFINE_MUTABLE_NOTNULLABLE_OBJECT_REF_METHODS(TypeName, ParentType, ObjectName) \
  TVM_OBJECT_REF_METHODS_(TypeName, ParentType, ObjectName, ObjectName*)                    \
  static constexpr bool _type_is_nullable = false;

// Adds CopyOnWrite(): the object to change, copied first if others hold it too.
#define TVM_DEFINE_OBJECT_REF_COW_METHOD(ObjectName)                                          \
  ObjectName* CopyOnWrite() {                                                                 \
    if (!data_.unique()) {                                                                    \
      data_ = ::tvm::runtime::ObjectPtr<::tvm::runtime::Object>(                              \
          ::tvm::runtime::make_object<ObjectName>(*static_cast<ObjectName*>(data_.get())));   \
    }                                                                                         \
    return static_cast<ObjectName*>(data_.get());                                             \
  }

}  // namespace runtime

using runtime::Downcast;
using runtime::GetRef;
using runtime::make_object;
using runtime::Object;
using runtime::ObjectPtr;
using runtime::ObjectPtrEqual;
using runtime::ObjectPtrHash;
using runtime::ObjectRef;

}  // namespace tvm
#endif  // TVM_RUNTIME_OBJECT_H_
