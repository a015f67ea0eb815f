// Functions with the values that they took from where they were made: what executors' own kinds derive from.
#ifndef TVM_RUNTIME_CONTAINER_CLOSURE_H_
#define TVM_RUNTIME_CONTAINER_CLOSURE_H_

#include <tvm/runtime/object.h>

namespace tvm {
namespace runtime {

class ClosureObj : public Object {
 public:
  static constexpr const char* _type_key = "runtime.Closure";
  TVM_DECLARE_BASE_OBJECT_INFO(ClosureObj, Object);
};

class Closure : public ObjectRef {
 public:
  TVM_DEFINE_OBJECT_REF_METHODS(Closure, ObjectRef, ClosureObj);
};

}  // namespace runtime
using runtime::Closure;
using runtime::ClosureObj;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_CLOSURE_H_
