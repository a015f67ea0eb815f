// What functions of the machine's library need.
#ifndef TVM_SRC_RELAX_VM_BUILTIN_H_
#define TVM_SRC_RELAX_VM_BUILTIN_H_

#include <tvm/runtime/packed_func.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {
namespace relax_vm {

// The tensor of an argument, which must be on the host; `who` is for messages.
const DLTensor& HostTensor(const TVMArgValue& value, const char* who);

// The elements of a compact tensor.
template <class T>
T* DataOf(const DLTensor& tensor) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor.data) + tensor.byte_offset);
}

// Whether a value is a shape, of this or another language.
bool IsShape(const TVMArgValue& value);

// What a value is, for messages: "Tensor", "Shape", "int".
std::string KindName(const TVMArgValue& value);

// The items of a tuple of this or another language; raises if it is none.
ObjectPtr<ArrayNode> TupleIn(const TVMArgValue& value, const std::string& who);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RELAX_VM_BUILTIN_H_
