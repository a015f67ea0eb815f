// The warning, or error, about inputs that were never set.
#include "unset_inputs.h"

#include <tvm/runtime/registry.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tvm {
namespace runtime {
namespace {

bool IsStrict() {
  const char* text = std::getenv("TVM_STRICT_INPUTS");
  return text != nullptr && (std::strcmp(text, "1") == 0 || std::strcmp(text, "true") == 0 || std::strcmp(text, "on") == 0);
}

std::string TextOf(const std::vector<UnsetInput>& inputs) {
  std::string list;
  for (const UnsetInput& input : inputs) {
    list += Cat(list.empty() ? "" : ", ", "'", input.name, "' ", ShapeText(input.shape.data(), static_cast<int>(input.shape.size())),
                " ", DLDataType2String(input.dtype));
  }
  return Cat("the model runs although ", inputs.size() == 1 ? "an input was" : "inputs were", " never set: ", list,
             "; zeros stand in ", inputs.size() == 1 ? "its" : "their", " place");
}

}  // namespace

void ReportUnsetInputs(const std::vector<UnsetInput>& inputs) {
  if (inputs.empty()) return;
  const std::string text = TextOf(inputs);
  PackedFunc report = Registry::Find("runtime.ReportUnsetInputs");
  if (report.defined()) {
    report(text);
  } else if (IsStrict()) {
    ThrowValueError(text);
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

}  // namespace runtime
}  // namespace tvm
