// The virtual machine: runs the functions of an executable.
#ifndef TVM_SRC_VM_MACHINE_H_
#define TVM_SRC_VM_MACHINE_H_

#include <tvm/runtime/container/adt.h>
#include <tvm/runtime/container/closure.h>
#include <tvm/runtime/run_lock.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../shared_use.h"
#include "executable.h"
#include "memory.h"

namespace tvm {
namespace runtime {
namespace vm {

// A function with the values that it took from where it was made.
class ClosureObj : public runtime::ClosureObj {
 public:
  int64_t function{0};
  std::vector<ObjectRef> captured;
  static constexpr const char* _type_key = "vm.Closure";
  TVM_DECLARE_FINAL_OBJECT_INFO(ClosureObj, runtime::ClosureObj);
};

struct Kernel {
  PackedFunc func;
  TVMBackendPackedCFunc direct{nullptr};
};

// The arguments of one call of a kernel, tuples taken apart.
struct KernelArgs {
  std::vector<TVMValue> values;
  std::vector<int> codes;
};

class Machine : public ModuleNode {
 public:
  explicit Machine(const Module& executable);

  const char* type_key() const override { return "VirtualMachine"; }
  int GetPropertyMask() const final { return kRunnable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override;

  // One device and kind of allocator after the other; must be called before the first run.
  void Init(const std::vector<DLDevice>& devices, const std::vector<AllocatorType>& kinds);
  ObjectRef Run(const std::string& name, const std::vector<ObjectRef>& args);

 protected:
  struct Frame {
    const Function* func;
    size_t pc;
    size_t base;       // of its registers
    int64_t result;    // the caller's register
  };
  struct State {
    std::vector<ObjectRef> registers;
    std::vector<Frame> frames;
    KernelArgs args;
  };

  // Where the caller of a function wants its results.
  struct GivenOutputs {
    std::vector<NDArray> arrays;
    std::unordered_map<size_t, size_t> allocations;  // the number of a result by that of the instruction
  };

  // A method that holds the machine while it runs.
  template <class F>
  PackedFunc Exclusive(const ObjectPtr<Object>& self, F body) {
    return PackedFunc([this, self, body](TVMArgs args, TVMRetValue* rv) {
      std::lock_guard<RunLock> lock(lock_);
      body(args, rv);
    });
  }

  // `site` is at the call.
  virtual void CallKernel(const Frame& site, int64_t index, const KernelArgs& args);

  ObjectRef Execute(int64_t function, const std::vector<ObjectRef>& args);
  void Enter(State* state, int64_t function, std::vector<ObjectRef> args, int64_t result, bool is_tail);
  void InvokeClosure(State* state, const Instruction& call, const ObjectRef* registers);
  void InvokePacked(State* state, const Instruction& call, const ObjectRef* registers);
  // Instructions that only compute the value of one register.
  virtual ObjectRef Value(const Instruction& instruction, const ObjectRef* registers);
  ObjectRef AllocStorage(const Instruction& instruction, const ObjectRef* registers);
  ObjectRef AllocTensor(StorageObj* storage, int64_t offset, const std::vector<int64_t>& shape, DLDataType dtype) const;
  // The array that a caller gave for what an instruction allocates; undefined if there is none, or it does not fit.
  ObjectRef GivenTensor(size_t pc, const Instruction& instruction, const ObjectRef* registers) const;
  ObjectRef Constant(int64_t index);

  DLDevice DeviceOf(int64_t index) const { return devices_.at(index); }
  ObjectRef OnDevice(const TVMArgValue& value, int64_t device, const std::string& what) const;
  void SetInput(const std::string& name, TVMArgs args, int first);
  void SetOneInput(TVMArgs args);
  void SetOutputs(const std::string& name, TVMArgs args, int first);
  ObjectRef Invoke(const std::string& name);
  // Keeps the result for Outputs.
  void InvokeStateful(const std::string& name);
  void TakeOutputs(const std::string& name, const ObjectRef& result, const std::vector<NDArray>& given) const;
  std::vector<NDArray> Outputs() const;

  Module executable_;
  Executable* exec_;
  std::vector<Kernel> kernels_;
  std::vector<DLDevice> devices_;
  std::vector<std::shared_ptr<Allocator>> allocators_;
  std::vector<ObjectRef> constants_;
  std::unordered_map<std::string, std::vector<ObjectRef>> inputs_;
  std::unordered_map<std::string, GivenOutputs> outputs_;  // of the next run of a function
  const GivenOutputs* given_{nullptr};                     // of the current one
  ObjectRef result_;
  std::unordered_map<std::string, SharedUse> uses_;  // of the inputs of a function; behind them, that of its outputs
  SharedUse result_use_;
  RunLock lock_;
};

// The tensors of a value, those of tuples in order.
void Flatten(const ObjectRef& value, std::vector<NDArray>* tensors);

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_VM_MACHINE_H_
