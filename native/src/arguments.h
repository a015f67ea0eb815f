// Arguments that must be there.
#ifndef TVM_SRC_ARGUMENTS_H_
#define TVM_SRC_ARGUMENTS_H_

#include <tvm/runtime/packed_func.h>

namespace tvm {
namespace runtime {

// The tensor of an argument, which is not None.
inline DLTensor& TensorIn(const TVMArgValue& value) {
  DLTensor* tensor = value;
  if (tensor == nullptr) ThrowTypeError("expected NDArray, got None");
  return *tensor;
}

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_ARGUMENTS_H_
