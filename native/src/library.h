// Compiled libraries: symbols in a shared object, in memory, or linked into the program.
#ifndef TVM_SRC_LIBRARY_H_
#define TVM_SRC_LIBRARY_H_

#include <tvm/runtime/module.h>

#include <string>

#include "bytes.h"

namespace tvm {
namespace runtime {

class Library : public Object {
 public:
  static constexpr uint32_t kTypeIndex = kRuntimeObject;
  virtual ~Library() = default;
  virtual void* GetSymbol(const char* name) = 0;
  // How many bytes the symbol at this address has; 0 if that is not known.
  virtual uint64_t SizeAt(void* address) { return 0; }
  // Whether its bytes are known to be those that were written.
  virtual bool IsVerified() { return false; }
  // Equal for two objects over the same code.
  virtual void* Identity() { return this; }
};

// A module of the library's functions. If the library carries other modules, the root of their tree.
Module CreateModuleFromLibrary(ObjectPtr<Library> library);

// Gives compiled code the addresses it calls, and its module.
void FillContext(Library* library, ModuleNode* module);

// The function `name` of the library, undefined if it has none.
PackedFunc FindInLibrary(const ObjectPtr<Library>& library, const std::string& name, const ObjectPtr<Object>& owner);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_LIBRARY_H_
