// The imported modules of a library as bytes.
#ifndef TVM_SRC_MODULE_PACK_H_
#define TVM_SRC_MODULE_PACK_H_

#include <cstddef>

namespace tvm {
namespace runtime {

// Whether packed modules end with their checksum; raises if it is wrong.
bool CheckPackedModules(const char* data, size_t size);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_MODULE_PACK_H_
