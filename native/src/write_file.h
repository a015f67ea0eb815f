// Writing files whole.
#ifndef TVM_SRC_WRITE_FILE_H_
#define TVM_SRC_WRITE_FILE_H_

#include <string>

namespace tvm {
namespace runtime {

// Writes a file that takes the place of an old one at once when all of it is on the disk; if that fails, or the process
// ends, the old one stays.
void WriteFile(const std::string& path, const std::string& bytes);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_WRITE_FILE_H_
