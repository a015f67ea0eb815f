// Relax's virtual machine: runs the functions of an executable.
#ifndef TVM_SRC_RELAX_VM_MACHINE_H_
#define TVM_SRC_RELAX_VM_MACHINE_H_

#include <tvm/runtime/container/closure.h>
#include <tvm/runtime/run_lock.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "../shared_use.h"
#include "../vm/memory.h"
#include "executable.h"

namespace tvm {
namespace runtime {
namespace relax_vm {

// A function of an executable with the values that it took from where it was made.
class ClosureObj : public runtime::ClosureObj {
 public:
  ObjectPtr<Executable> executable;
  Word function{0};
  std::vector<TVMRetValue> captured;
  static constexpr const char* _type_key = "relax.vm.Closure";
  TVM_DECLARE_FINAL_OBJECT_INFO(ClosureObj, runtime::ClosureObj);
};

// What a call instruction calls.
struct Callee {
  enum Kind { kPacked, kDirect, kVM, kCompiled, kInvokeClosure } kind;
  PackedFunc func;
  TVMBackendPackedCFunc direct{nullptr};
};

// The arguments of a call, borrowed.
struct CallArgs {
  std::vector<TVMValue> values;
  std::vector<int> codes;
  TVMArgs View() const { return TVMArgs(values.data(), codes.data(), static_cast<int>(values.size())); }
};

class Machine : public ModuleNode {
 public:
  explicit Machine(const Module& executable);

  const char* type_key() const override { return "relax.VirtualMachine"; }
  int GetPropertyMask() const final { return kRunnable; }
  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) override;

  // The machine that a function of the library was given.
  static Machine* Of(void* state) { return static_cast<Machine*>(state); }

  TVMRetValue InvokeClosure(const ObjectRef& closure, TVMArgs args, int first);
  DLDevice DeviceAt(int64_t index) const;
  const std::shared_ptr<vm::Allocator>& AllocatorAt(int64_t index) const;

 protected:
  struct Frame {
    const Function* func;
    size_t pc;
    size_t base;   // of its registers
    Word target;   // the caller's register
  };
  struct State {
    std::vector<TVMRetValue> registers;
    std::vector<Frame> frames;
    CallArgs args;
  };
  struct Saved {
    Word function;
    std::vector<TVMRetValue> args;
    bool returns;
  };

  // A method that holds the machine while it runs.
  template <class F>
  PackedFunc Exclusive(const ObjectPtr<Object>& self, F body) {
    return PackedFunc([this, self, body](TVMArgs args, TVMRetValue* rv) {
      std::lock_guard<RunLock> lock(lock_);
      body(args, rv);
    });
  }

  // One device and kind of allocator after the other; before the first run.
  void Init(const std::vector<DLDevice>& devices, const std::vector<vm::AllocatorType>& kinds);
  Callee FindCallee(const Function& func, const Module& library) const;

  TVMRetValue Run(Word function, std::vector<TVMRetValue> args);
  TVMRetValue Execute(Word function, std::vector<TVMRetValue> args);
  TVMRetValue RunCompiled(Word function, std::vector<TVMRetValue> args);
  void Enter(State* state, Word function, std::vector<TVMRetValue> args, Word target);
  // Whether the call was one of instructions: a frame was entered.
  bool Call(State* state, const Instruction& call, TVMRetValue* registers);
  // A function of the library or a global one.
  virtual void CallPacked(const Callee& callee, const Function& func, const CallArgs& args, TVMRetValue* result);
  void CallInstrumented(const Callee& callee, const Function& func, const CallArgs& args, TVMRetValue* result);

  TVMRetValue OnDevice(const TVMArgValue& value) const;
  std::vector<TVMRetValue> OnDevice(TVMArgs args, int first) const;
  void CheckCount(const Function& func, size_t given) const;
  void SetInput(const std::string& name, TVMArgs args, int first);
  void InvokeStateful(const std::string& name);
  TVMRetValue Output(const std::string& name, TVMArgs indices, int first);

  Module executable_;
  Executable* exec_;
  std::vector<Callee> callees_;
  std::vector<TVMRetValue> functions_;  // as arguments
  std::vector<TVMRetValue> constants_;
  std::vector<DLDevice> devices_;
  std::vector<std::shared_ptr<vm::Allocator>> allocators_;
  PackedFunc instrument_;
  std::unordered_map<std::string, Saved> saved_;
  std::unordered_map<std::string, std::vector<TVMRetValue>> inputs_;
  std::unordered_map<std::string, TVMRetValue> outputs_;
  std::unordered_map<std::string, SharedUse> uses_;  // of the inputs and outputs of a function
  RunLock lock_;
  int depth_{0};  // of runs within runs
};

// Containers of other languages as native ones, those within them too; borrowed tensors copied.
TVMRetValue AsNativeValue(const TVMArgValue& value);

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_RELAX_VM_MACHINE_H_
