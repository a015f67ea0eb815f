// A program for the virtual machine: functions, constants, names of kernels, and the library that has those.
#ifndef TVM_SRC_VM_EXECUTABLE_H_
#define TVM_SRC_VM_EXECUTABLE_H_

#include <tvm/runtime/module.h>

#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../params.h"
#include "bytecode.h"

namespace tvm {
namespace runtime {
namespace vm {

using VirtualDevice = std::pair<DLDevice, std::string>;  // and its memory scope

class Executable : public ModuleNode {
 public:
  const char* type_key() const final { return "VMExecutable"; }
  int GetPropertyMask() const final { return kBinarySerializable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final;
  void SaveToBinary(dmlc::Stream* stream) final;
  void SaveToFile(const String& path, const String& format) final;

  std::string Save() const;
  // Raises ValueError if the bytes are no executable.
  // `is_verified`: the bytes are known to be those that were written.
  static Module Load(const char* data, size_t size, const Module& library, bool is_verified = false);

  // Checks everything that code refers to; to be called once all parts are there.
  void Finish();

  // The nodes of the imported model that a call of a kernel computes, for reports; empty if they are not known.
  std::string SourcesOf(const Function* func, size_t pc, int64_t kernel) const;
  const Function& FindFunction(const std::string& name) const;
  int64_t FunctionIndex(const std::string& name) const;  // -1 if there is none
  Module Library() const { return imports().empty() ? Module() : imports()[0]; }

  std::vector<VirtualDevice> devices;
  int64_t host_device{0};
  std::vector<NDArray> constants;  // undefined while their values are kept elsewhere
  std::map<size_t, std::string> late_bound_names;
  std::vector<int64_t> constant_devices;
  std::vector<std::string> kernels;
  std::map<uint64_t, std::map<std::string, std::string>> kernel_attrs;
  std::vector<Function> functions;
  std::map<std::string, std::string> signatures;  // by function: its inputs and outputs in JSON, if they are known

  // Texts for readers.
  std::string BytecodeText() const;
  std::string ConstantsText() const;
  std::string DevicesText() const;
  std::string KernelsText() const;
  std::string Stats() const;

  NamedArrays LateBound(size_t byte_limit) const;
  void MoveLateBound(const std::string& path, size_t byte_limit);
  void BindLate(const NamedArrays& values);

 private:
  std::unordered_map<std::string, int64_t> function_index_;
};

// The machine that runs it; the debugging one keeps the time of every call.
Module CreateMachine(const Module& executable);
Module CreateDebugMachine(const Module& executable);

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_VM_EXECUTABLE_H_
