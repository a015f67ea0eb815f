// The virtual machine for profiling: notes the time of each kernel and of each allocation.
#include <tvm/runtime/registry.h>

#include <chrono>

#include "../json.h"
#include "machine.h"

namespace tvm {
namespace runtime {
namespace vm {
namespace {

using Clock = std::chrono::steady_clock;

class DebugMachine : public Machine {
 public:
  using Machine::Machine;
  const char* type_key() const final { return "VirtualMachineDebug"; }

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == "reset") {
      return Exclusive(self, [this](TVMArgs, TVMRetValue*) { calls_.clear(); });
    }
    if (name == "get_calls") {  // JSON: [[kernel or instruction, seconds, [shape and dtype of each argument], [kind and number of the device], nodes of the model, hash], ...]
      return Exclusive(self, [this](TVMArgs, TVMRetValue* rv) { *rv = CallsText(); });
    }
    if (name == "observe") {  // (before, after): called around each of these; None for neither
      return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
        before_ = args[0].is_null() ? PackedFunc() : args[0].operator PackedFunc();
        after_ = args[1].is_null() ? PackedFunc() : args[1].operator PackedFunc();
      });
    }
    return Machine::GetFunction(name, self);
  }

 protected:
  void CallKernel(const Frame& site, int64_t index, const KernelArgs& args) final {
    Call& call = Timed([&] { Machine::CallKernel(site, index, args); });
    call.name = exec_->kernels[index];
    call.sources = exec_->SourcesOf(site.func, site.pc, index);
    call.hash = HashOf(index);
    for (const TVMValue& value : args.values) {
      auto* tensor = static_cast<DLTensor*>(value.v_handle);
      call.device = tensor->device;  // kernels run where their arguments are
      call.args.push_back(Described(*tensor));
    }
  }

  ObjectRef Value(const Instruction& instruction, const ObjectRef* registers) final {
    const char* name = AllocationName(instruction.op);
    if (name == nullptr) return Machine::Value(instruction, registers);
    ObjectRef value;
    Call& call = Timed([&] { value = Machine::Value(instruction, registers); });
    call.name = name;
    if (const auto* storage = value.as<StorageObj>()) {
      call.device = storage->device();
      call.args.push_back(Cat("uint8[", storage->block.size, "]"));
    } else {
      NDArray array(ObjectPtr<Object>(value.get_mutable()));
      call.device = array->device;
      call.args.push_back(Described(*array.operator->()));
    }
    return value;
  }

 private:
  struct Call {
    double seconds;
    std::string name;
    std::vector<std::string> args;
    DLDevice device{kDLCPU, 0};
    std::string sources;
    std::string hash;
  };

  // How reports call an instruction that allocates; null for others.
  static const char* AllocationName(int64_t op) {
    switch (op) {
      case kAllocTensor: return "VM::AllocTensor";
      case kAllocTensorReg: return "VM::AllocTensorReg";
      case kAllocStorage: return "VM::AllocStorage";
      default: return nullptr;
    }
  }

  // The structural hash of a kernel's source, empty if the executable does not tell it.
  std::string HashOf(int64_t kernel) const {
    auto attrs = exec_->kernel_attrs.find(kernel);
    if (attrs == exec_->kernel_attrs.end()) return "";
    auto found = attrs->second.find("hash");
    return found == attrs->second.end() ? "" : found->second;
  }

  // The note of what `run` took, under the eyes of the observers.
  template <class F>
  Call& Timed(F run) {
    if (before_.defined()) before_();
    auto start = Clock::now();
    run();
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (after_.defined()) after_();
    calls_.push_back(Call{seconds, {}, {}, {kDLCPU, 0}, {}, {}});
    return calls_.back();
  }

  static std::string Described(const DLTensor& tensor) {
    std::string shape = "[";
    for (int i = 0; i < tensor.ndim; ++i) shape += (i ? ", " : "") + std::to_string(tensor.shape[i]);
    return DLDataType2String(tensor.dtype) + shape + "]";
  }

  std::string CallsText() const {
    std::string text = "[";
    for (const Call& call : calls_) {
      text += Cat(text.size() > 1 ? ", [" : "[", Json::Quote(call.name), ", ", call.seconds, ", [");
      for (size_t i = 0; i < call.args.size(); ++i) text += (i ? ", " : "") + Json::Quote(call.args[i]);
      text += Cat("], [", static_cast<int>(call.device.device_type), ", ", call.device.device_id, "], ", Json::Quote(call.sources), ", ", Json::Quote(call.hash), "]");
    }
    return text + "]";
  }

  std::vector<Call> calls_;
  PackedFunc before_;
  PackedFunc after_;
};

}  // namespace

Module CreateDebugMachine(const Module& executable) { return Module(ObjectPtr<ModuleNode>(make_object<DebugMachine>(executable))); }

TVM_REGISTER_GLOBAL("runtime._VirtualMachineDebug").set_body_typed([](Module executable) {
  if (!executable.defined()) ThrowTypeError("the virtual machine needs an executable, got None");
  return CreateDebugMachine(executable);
});

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
