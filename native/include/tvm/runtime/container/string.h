// Text by its classic name.
#ifndef TVM_RUNTIME_CONTAINER_STRING_H_
#define TVM_RUNTIME_CONTAINER_STRING_H_

#include <string>

namespace tvm {
namespace runtime {

using String = std::string;

}  // namespace runtime
using runtime::String;
}  // namespace tvm
#endif  // TVM_RUNTIME_CONTAINER_STRING_H_
