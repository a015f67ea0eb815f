// Attributes of objects, by name: what Python sees of a kind that a C++ library declares.
//
//     class PointNode : public Object {
//      public:
//       int64_t x, y;
//       void VisitAttrs(AttrVisitor* v) { v->Visit("x", &x); v->Visit("y", &y); }
//       static constexpr const char* _type_key = "my.Point";
//       TVM_DECLARE_FINAL_OBJECT_INFO(PointNode, Object);
//     };
//     TVM_REGISTER_NODE_TYPE(PointNode);        python: @tvm._ffi.register_object("my.Point")
//                                                       class Point(tvm.runtime.Object): ...
#ifndef TVM_NODE_REFLECTION_H_
#define TVM_NODE_REFLECTION_H_

#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/object.h>
#include <tvm/runtime/packed_func.h>

#include <string>
#include <type_traits>

namespace tvm {

class TVM_DLL AttrVisitor {
 public:
  virtual ~AttrVisitor() = default;
  virtual void Visit(const char* key, double* value) = 0;
  virtual void Visit(const char* key, int64_t* value) = 0;
  virtual void Visit(const char* key, uint64_t* value) = 0;
  virtual void Visit(const char* key, int* value) = 0;
  virtual void Visit(const char* key, bool* value) = 0;
  virtual void Visit(const char* key, std::string* value) = 0;
  virtual void Visit(const char* key, void** value) = 0;
  virtual void Visit(const char* key, DLDataType* value) = 0;
  virtual void Visit(const char* key, runtime::NDArray* value) = 0;
  // Only objects of the index `expected_`, or of kinds below it, belong there.
  virtual void Visit(const char* key, runtime::ObjectRef* value) = 0;

  template <class Ref, class = std::enable_if_t<runtime::detail::is_plain_ref<Ref>::value ||
                                                std::is_same<Ref, runtime::PackedFunc>::value>>
  void Visit(const char* key, Ref* value) {
    expected_ = runtime::TypeIndexOf<typename Ref::ContainerType>();
    Visit(key, static_cast<runtime::ObjectRef*>(value));
    expected_ = runtime::kRuntimeObject;
  }
  template <class Enum, std::enable_if_t<std::is_enum<Enum>::value, int> = 0>
  void Visit(const char* key, Enum* value) {
    static_assert(sizeof(int) == sizeof(Enum), "enumerations are visited as int");
    Visit(key, reinterpret_cast<int*>(value));
  }

 protected:
  uint32_t expected_{runtime::kRuntimeObject};
};

// How the objects of a kind are visited and made.
class TVM_DLL ReflectionVTable {
 public:
  using VisitAttrs = void (*)(runtime::Object*, AttrVisitor*);
  using Create = runtime::ObjectPtr<runtime::Object> (*)();

  static uint32_t Register(uint32_t type_index, VisitAttrs visit, Create create);

  template <class T>
  static uint32_t Register() {
    Create create = nullptr;
    if constexpr (std::is_default_constructible<T>::value) {
      create = [] { return runtime::ObjectPtr<runtime::Object>(runtime::make_object<T>()); };
    }
    return Register(
        T::RuntimeTypeIndex(),
        [](runtime::Object* self, AttrVisitor* visitor) { static_cast<T*>(self)->VisitAttrs(visitor); }, create);
  }
};

#define TVM_REGISTER_NODE_TYPE(TypeName)                                                    \
  static __attribute__((unused)) uint32_t TVM_OBJECT_CONCAT(tvm_node_type_, __COUNTER__) = \
      ::tvm::ReflectionVTable::Register<TypeName>()

}  // namespace tvm
#endif  // TVM_NODE_REFLECTION_H_
