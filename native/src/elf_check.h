// Shared libraries before they are loaded: the system's loader trusts what they say and would end the process.
#ifndef TVM_SRC_ELF_CHECK_H_
#define TVM_SRC_ELF_CHECK_H_

#include <cstdint>
#include <string>

namespace tvm {
namespace runtime {

// Raises, with the reason, unless the loader can be given the library. One with a stamp must have the bytes that it had
// then; others are looked through for all that the loader follows. Whether all that is loaded is known to be as it was written.
bool CheckLibrary(const std::string& path);

// Raises unless every table that the loader follows lies where it says and refers to what there is. Damage to code and to
// data remains unseen, and, in a library without names for debuggers, that of the addresses of functions which run at loading.
void CheckElf(const char* data, uint64_t size);

// Raises unless the sections of an object are in the file.
void CheckObjectSections(const char* data, uint64_t size);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_ELF_CHECK_H_
