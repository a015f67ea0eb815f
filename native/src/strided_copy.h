// Copies of elements that may lie anywhere.
#ifndef TVM_SRC_STRIDED_COPY_H_
#define TVM_SRC_STRIDED_COPY_H_

#include <dlpack/dlpack.h>

namespace tvm {
namespace runtime {

// Copies between tensors on the host of one shape and dtype, on all threads if that pays.
void CopyStrided(const DLTensor& from, const DLTensor& to);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_STRIDED_COPY_H_
