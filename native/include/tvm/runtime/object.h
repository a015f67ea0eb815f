// Reference-counted objects.
//
// The layout of the header (type index, count, deleter) is that of the classic runtime.
#ifndef TVM_RUNTIME_OBJECT_H_
#define TVM_RUNTIME_OBJECT_H_

#include <tvm/runtime/c_runtime_api.h>

#include <atomic>
#include <cstdint>
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
};

class Object {
 public:
  using Deleter = void (*)(Object*);

  uint32_t type_index() const { return type_index_; }
  int use_count() const { return ref_counter_.load(std::memory_order_relaxed); }

  void IncRef() { ref_counter_.fetch_add(1, std::memory_order_relaxed); }
  // For those who hold no reference: fails if the object is about to be freed.
  bool TryIncRef() {
    int32_t count = ref_counter_.load(std::memory_order_relaxed);
    while (count > 0 && !ref_counter_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) {
    }
    return count > 0;
  }
  void DecRef() {
    if (ref_counter_.fetch_sub(1, std::memory_order_release) == 1) {
      std::atomic_thread_fence(std::memory_order_acquire);
      if (deleter_ != nullptr) deleter_(this);
    }
  }

  // The index of a type key, made on first use; the key of an index, empty if there is none.
  TVM_DLL static uint32_t TypeKey2Index(const std::string& key);
  TVM_DLL static std::string TypeIndex2Key(uint32_t index);

 protected:
  Object() = default;
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

// Allocates an object with no reference yet. T::kTypeIndex names its type.
template <class T, class... Args>
T* NewObject(Args&&... args) {
  T* object = new T(std::forward<Args>(args)...);
  object->type_index_ = T::kTypeIndex;
  object->deleter_ = [](Object* self) { delete static_cast<T*>(self); };
  return object;
}

template <class T, class... Unused>
class ObjectPtr {
 public:
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
  ObjectRef() = default;
  explicit ObjectRef(ObjectPtr<Object> data) : data_(std::move(data)) {}

  bool defined() const { return data_ != nullptr; }
  const Object* get() const { return data_.get(); }
  Object* get_mutable() const { return data_.get(); }
  bool same_as(const ObjectRef& other) const { return data_.get() == other.data_.get(); }
  template <class T>
  T* as() const {
    return data_ && data_->type_index() == T::kTypeIndex ? static_cast<T*>(data_.get()) : nullptr;
  }

 protected:
  ObjectPtr<Object> data_;
};

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

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_OBJECT_H_
