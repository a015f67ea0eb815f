// Inputs that a model reads although nobody has set them.
#ifndef TVM_SRC_UNSET_INPUTS_H_
#define TVM_SRC_UNSET_INPUTS_H_

#include <tvm/runtime/data_type.h>

#include <string>
#include <vector>

namespace tvm {
namespace runtime {

struct UnsetInput {
  std::string name;
  std::vector<int64_t> shape;
  DLDataType dtype;
};

// Says of all of them, if there are any, that the model computes with zeros in their place. The global function
// "runtime.ReportUnsetInputs" decides how, where a language has registered it; otherwise it is a line on stderr, or an
// error if the environment's TVM_STRICT_INPUTS is 1.
void ReportUnsetInputs(const std::vector<UnsetInput>& inputs);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_UNSET_INPUTS_H_
