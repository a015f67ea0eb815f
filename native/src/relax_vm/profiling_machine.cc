// Relax's virtual machine for profiling: reports the time of every call of a run.
#include <tvm/runtime/profiling.h>

#include "machine.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

class ProfilingMachine : public Machine {
 public:
  using Machine::Machine;

  PackedFunc GetFunction(const String& name, const ObjectPtr<Object>& self) final {
    if (name == "profile") {  // (function, argument, ...)
      return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
        const Function& func = exec_->FindFunction(args[0]);
        std::vector<TVMRetValue> values = OnDevice(args, 1);
        Run(exec_->FunctionIndex(func.name), values);  // to warm up
        profiling::Profiler profiler(devices_, {}, {{String("Executor"), String("VM")}});
        struct Scope {
          profiling::Profiler*& place;
          ~Scope() { place = nullptr; }
        } scope{profiler_};
        profiler_ = &profiler;
        profiler.Start();
        Run(exec_->FunctionIndex(func.name), values);
        profiler.Stop();
        *rv = profiler.Report()->AsJSON();  // which crosses any border
      });
    }
    return Machine::GetFunction(name, self);
  }

 protected:
  void CallPacked(const Callee& callee, const Function& func, const CallArgs& args, TVMRetValue* result) final {
    if (profiler_ == nullptr || !profiler_->IsRunning()) return Machine::CallPacked(callee, func, args, result);
    std::vector<NDArray> arrays;
    DLDevice device = devices_.at(0);
    for (int i = 0; i < args.View().size(); ++i) {
      if (args.codes[i] != kTVMNDArrayHandle) continue;
      arrays.push_back(args.View()[i]);
      device = arrays.back()->device;
    }
    profiler_->StartCall(func.name, device, {{"Argument Shapes", profiling::ShapeString(arrays)}});
    Machine::CallPacked(callee, func, args, result);
    profiler_->StopCall();
  }

 private:
  profiling::Profiler* profiler_{nullptr};
};

}  // namespace

Module CreateProfilingMachine(const Module& executable) {
  return Module(ObjectPtr<ModuleNode>(make_object<ProfilingMachine>(executable)));
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
