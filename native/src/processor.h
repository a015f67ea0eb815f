// What compiled code asks of the processor that runs it.
#ifndef TVM_RUNTIME_SRC_PROCESSOR_H_
#define TVM_RUNTIME_SRC_PROCESSOR_H_

#include <string>

namespace tvm {
namespace runtime {

// Those features of a note such as "x86_64:avx,avx2" that this processor lacks, with commas between
// them; none for a note of another architecture, whose code the system's loader refuses itself.
std::string MissingFeatures(const std::string& note);

}  // namespace runtime
}  // namespace tvm

#endif  // TVM_RUNTIME_SRC_PROCESSOR_H_
