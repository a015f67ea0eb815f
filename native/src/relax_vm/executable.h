// A program for relax's virtual machine: functions, constants, and the library that has its kernels.
#ifndef TVM_SRC_RELAX_VM_EXECUTABLE_H_
#define TVM_SRC_RELAX_VM_EXECUTABLE_H_

#include <tvm/runtime/module.h>

#include <string>
#include <unordered_map>
#include <vector>

#include "bytecode.h"

namespace tvm {
namespace runtime {
namespace relax_vm {

class Executable : public ModuleNode {
 public:
  const char* type_key() const final { return "relax.Executable"; }
  int GetPropertyMask() const final { return kBinarySerializable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final;
  void SaveToBinary(dmlc::Stream* stream) final;
  void SaveToFile(const String& path, const String& format) final;

  // Checks everything that code refers to; to be called once all parts are there.
  void Finish();

  Word FunctionIndex(const std::string& name) const;  // -1 if there is none
  // The function that has parameters; raises if there is none.
  const Function& FindFunction(const std::string& name) const;

  std::string Save() const;
  static Module Load(const char* data, size_t size, bool is_verified);

  // Texts for readers; text.cc.
  std::string AsText() const;
  std::string AsPython() const;
  std::string Stats() const;

  std::vector<Function> functions;
  std::vector<TVMRetValue> constants;  // arrays, shapes, texts, data types, integers and floats

 private:
  std::unordered_map<std::string, Word> function_index_;
};

// The machine that runs it; the profiling one keeps the time of every call.
Module CreateMachine(const Module& executable);
Module CreateProfilingMachine(const Module& executable);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RELAX_VM_EXECUTABLE_H_
