// Shapes by their classic name.
#ifndef TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_
#define TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_

#include <cstdint>
#include <vector>

namespace tvm {
namespace runtime {

using ShapeTuple = std::vector<int64_t>;

}  // namespace runtime
using runtime::ShapeTuple;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_SHAPE_TUPLE_H_
