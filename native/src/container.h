// Containers of other languages.
#ifndef TVM_SRC_CONTAINER_H_
#define TVM_SRC_CONTAINER_H_

#include <tvm/runtime/packed_func.h>

namespace tvm {
namespace runtime {

// As the function without `has_shapes`, for which shapes are arrays of integers; with it they are shapes.
ObjectRef AsNativeContainer(const ObjectRef& foreign, bool has_shapes);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_CONTAINER_H_
