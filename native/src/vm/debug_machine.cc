// The virtual machine for profiling: notes the time of each kernel.
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
    if (name == "get_calls") {  // JSON: [[kernel, seconds, [shape and dtype of each argument], [kind and number of the device], nodes of the model], ...]
      return Exclusive(self, [this](TVMArgs, TVMRetValue* rv) { *rv = CallsText(); });
    }
    if (name == "observe") {  // (before, after): called around each kernel; None for neither
      return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
        before_ = args[0].is_null() ? PackedFunc() : args[0].operator PackedFunc();
        after_ = args[1].is_null() ? PackedFunc() : args[1].operator PackedFunc();
      });
    }
    return Machine::GetFunction(name, self);
  }

 protected:
  void CallKernel(const Frame& site, int64_t index, const KernelArgs& args) final {
    if (before_.defined()) before_();
    auto start = Clock::now();
    Machine::CallKernel(site, index, args);
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (after_.defined()) after_();
    Call call{index, seconds, {}, {kDLCPU, 0}, exec_->SourcesOf(site.func, site.pc, index)};
    for (const TVMValue& value : args.values) {
      auto* tensor = static_cast<DLTensor*>(value.v_handle);
      call.device = tensor->device;  // kernels run where their arguments are
      std::string shape = "[";
      for (int i = 0; i < tensor->ndim; ++i) shape += (i ? ", " : "") + std::to_string(tensor->shape[i]);
      call.args.push_back(DLDataType2String(tensor->dtype) + shape + "]");
    }
    calls_.push_back(std::move(call));
  }

 private:
  struct Call {
    int64_t kernel;
    double seconds;
    std::vector<std::string> args;
    DLDevice device;
    std::string sources;
  };

  std::string CallsText() const {
    std::string text = "[";
    for (const Call& call : calls_) {
      text += Cat(text.size() > 1 ? ", [" : "[", Json::Quote(exec_->kernels[call.kernel]), ", ", call.seconds, ", [");
      for (size_t i = 0; i < call.args.size(); ++i) text += (i ? ", " : "") + Json::Quote(call.args[i]);
      text += Cat("], [", static_cast<int>(call.device.device_type), ", ", call.device.device_id, "], ", Json::Quote(call.sources), "]");
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
