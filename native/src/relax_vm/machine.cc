// The interpreter of the instructions of relax's virtual machine.
#include "machine.h"

#include <tvm/runtime/registry.h>

#include <algorithm>

#include "../interrupt.h"

namespace tvm {
namespace runtime {
namespace relax_vm {

TVM_REGISTER_OBJECT_TYPE(ClosureObj);

namespace {

constexpr size_t kMaxFrames = size_t{1} << 20;
// runs within runs, which take of the thread's stack
constexpr int kMaxDepth = 2000;
constexpr const char* kInvokeClosureName = "vm.builtin.invoke_closure";
constexpr const char* kCompiledPrefix = "__vmtir__";

bool IsTrue(const TVMRetValue& value) {
  if (value.type_code() == kTVMArgInt || value.type_code() == kTVMArgBool) return value.value().v_int64 != 0;
  ThrowTypeError("a condition needs a truth value, got ", ArgTypeCode2Str(value.type_code()));
}

TVMRetValue Copy(const TVMArgValue& value) {
  TVMRetValue copy;
  copy = value;
  return copy;
}

}  // namespace

Machine::Machine(const Module& executable) : executable_(executable) {
  exec_ = dynamic_cast<Executable*>(executable.node());
  if (exec_ == nullptr) ThrowTypeError("the virtual machine needs an executable, got a module of type ", executable.node()->type_key());
  for (const Module& import : exec_->imports()) Import(import);
  Module library = exec_->imports().empty() ? Module() : exec_->imports()[0];
  for (size_t i = 0; i < exec_->functions.size(); ++i) {
    callees_.push_back(FindCallee(exec_->functions[i], library));
    functions_.emplace_back();
    if (callees_.back().kind == Callee::kVM || callees_.back().kind == Callee::kCompiled) {
      auto closure = make_object<ClosureObj>();
      closure->executable = GetObjectPtr<Executable>(exec_);
      closure->function = static_cast<Word>(i);
      functions_.back() = ObjectRef(ObjectPtr<Object>(closure));
    } else {
      functions_.back() = callees_.back().func;
    }
  }
}

Callee Machine::FindCallee(const Function& func, const Module& library) const {
  if (func.kind == FunctionKind::kVM) return {Callee::kVM, PackedFunc(), nullptr};
  bool is_compiled = func.kind == FunctionKind::kCompiled;
  std::string name = is_compiled ? kCompiledPrefix + func.name : func.name;
  PackedFunc found = library.defined() ? library.GetFunction(name, true) : PackedFunc();
  if (!found.defined() && !is_compiled) found = Registry::Find(name);
  if (!found.defined()) {
    ThrowValueError("there is no function '", name, "', which the executable calls: neither in its library nor among the global functions");
  }
  if (is_compiled) return {Callee::kCompiled, found, nullptr};
  if (func.name == kInvokeClosureName) return {Callee::kInvokeClosure, found, nullptr};
  TVMBackendPackedCFunc direct = found.func()->direct;
  return {direct != nullptr ? Callee::kDirect : Callee::kPacked, found, direct};
}

void Machine::Init(const std::vector<DLDevice>& devices, const std::vector<vm::AllocatorType>& kinds) {
  devices_ = devices;
  allocators_.clear();
  for (size_t i = 0; i < devices.size(); ++i) allocators_.push_back(vm::Allocator::Get(devices[i], kinds[i]));
  constants_.clear();
  for (const TVMRetValue& constant : exec_->constants) constants_.push_back(OnDevice(constant));
}

DLDevice Machine::DeviceAt(int64_t index) const {
  if (index == -1) index = static_cast<int64_t>(devices_.size()) - 1;  // the host
  if (index < 0 || index >= static_cast<int64_t>(devices_.size())) {
    ThrowValueError("the virtual machine was given ", devices_.size(), " devices, the program asks for device ", index);
  }
  return devices_[index];
}

const std::shared_ptr<vm::Allocator>& Machine::AllocatorAt(int64_t index) const {
  DeviceAt(index);
  return allocators_[index == -1 ? allocators_.size() - 1 : index];
}

void Machine::Enter(State* state, Word function, std::vector<TVMRetValue> args, Word target) {
  const Function& func = exec_->functions[function];
  CheckCount(func, args.size());
  if (state->frames.size() >= kMaxFrames) throw Error(Cat("RecursionError: '", func.name, "' is called ", kMaxFrames, " levels deep"));
  size_t base = state->registers.size();
  state->registers.resize(base + func.num_registers);
  std::move(args.begin(), args.end(), state->registers.begin() + base);
  state->frames.push_back({&func, 0, base, target});
}

TVMRetValue Machine::Run(Word function, std::vector<TVMRetValue> args) {
  if (devices_.empty()) ThrowValueError("the virtual machine has no device yet: call vm_initialization(kind, number, allocator) first");
  struct Depth {
    int& depth;
    ~Depth() { --depth; }
  } scope{depth_};
  if (++depth_ > kMaxDepth) throw Error(Cat("RecursionError: '", exec_->functions[function].name, "' is called by functions ", kMaxDepth, " levels deep"));
  bool is_compiled = callees_[function].kind == Callee::kCompiled;
  return is_compiled ? RunCompiled(function, std::move(args)) : Execute(function, std::move(args));
}

TVMRetValue Machine::RunCompiled(Word function, std::vector<TVMRetValue> args) {
  const Function& func = exec_->functions[function];
  CheckCount(func, args.size());
  // the register behind the parameters is the result's
  std::vector<TVMRetValue> registers = std::move(args);
  registers.resize(std::max(func.num_registers, func.num_args + 1));
  callees_[function].func(static_cast<void*>(this), static_cast<void*>(registers.data()), static_cast<void*>(constants_.data()),
                          static_cast<void*>(functions_.data()));
  return std::move(registers[func.num_args]);
}

TVMRetValue Machine::Execute(Word function, std::vector<TVMRetValue> args) {
  State state;
  Enter(&state, function, std::move(args), kVoidRegister);
  while (true) {
    Frame& frame = state.frames.back();
    TVMRetValue* registers = state.registers.data() + frame.base;
    const Instruction& next = frame.func->code[frame.pc];
    switch (next.op) {
      case Opcode::kCall:
        PollSignals();
        ++frame.pc;
        Call(&state, next, registers);
        continue;
      case Opcode::kGoto: frame.pc += next.operand; continue;
      case Opcode::kIf: frame.pc += IsTrue(registers[next.target]) ? 1 : next.operand; continue;
      case Opcode::kRet: {
        TVMRetValue result;
        if (next.target != kVoidRegister) result = std::move(registers[next.target]);
        Word target = frame.target;
        state.registers.resize(frame.base);
        state.frames.pop_back();
        if (state.frames.empty()) return result;
        if (target != kVoidRegister) state.registers[state.frames.back().base + target] = std::move(result);
        continue;
      }
    }
  }
}

bool Machine::Call(State* state, const Instruction& call, TVMRetValue* registers) {
  CallArgs& args = state->args;
  const size_t count = call.args.size();
  args.values.resize(count);
  args.codes.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Arg& arg = call.args[i];
    const TVMRetValue* source = nullptr;
    switch (arg.kind) {
      case ArgKind::kRegister:
        if (arg.value < kVoidRegister) source = &registers[arg.value];
        break;
      case ArgKind::kImmediate:
        args.values[i].v_int64 = arg.value;
        args.codes[i] = kTVMArgInt;
        continue;
      case ArgKind::kConstant: source = &constants_[arg.value]; break;
      case ArgKind::kFunction: source = &functions_[arg.value]; break;
    }
    if (source != nullptr) {
      args.values[i] = source->value();
      args.codes[i] = source->type_code();
    } else {
      bool is_machine = arg.value == kMachineRegister;
      args.values[i].v_handle = is_machine ? static_cast<void*>(this) : nullptr;
      args.codes[i] = is_machine ? kTVMOpaqueHandle : kTVMNullptr;
    }
  }
  const Callee& callee = callees_[call.operand];
  const Function& func = exec_->functions[call.operand];
  if (callee.kind == Callee::kVM) {
    std::vector<TVMRetValue> owned;
    for (size_t i = 0; i < count; ++i) owned.push_back(Copy(args.View()[static_cast<int>(i)]));
    Enter(state, call.operand, std::move(owned), call.target);
    return true;
  }
  if (callee.kind == Callee::kInvokeClosure && count >= 2 && args.codes[1] == kTVMObjectHandle && instrument_ == nullptr) {
    auto* closure = ObjectRef(args.View()[1]).as<ClosureObj>();
    if (closure != nullptr && closure->executable.get() == exec_ && callees_[closure->function].kind == Callee::kVM) {
      std::vector<TVMRetValue> owned = closure->captured;
      for (size_t i = 2; i < count; ++i) owned.push_back(Copy(args.View()[static_cast<int>(i)]));
      Enter(state, closure->function, std::move(owned), call.target);
      return true;
    }
  }
  TVMRetValue result;
  if (callee.kind == Callee::kCompiled) {
    std::vector<TVMRetValue> owned;
    for (size_t i = 0; i < count; ++i) owned.push_back(Copy(args.View()[static_cast<int>(i)]));
    result = Run(call.operand, std::move(owned));
  } else if (instrument_ != nullptr) {
    CallInstrumented(callee, func, args, &result);
  } else {
    CallPacked(callee, func, args, &result);
  }
  if (call.target != kVoidRegister) registers[call.target] = std::move(result);
  return false;
}

void Machine::CallPacked(const Callee& callee, const Function&, const CallArgs& args, TVMRetValue* result) {
  if (callee.kind != Callee::kDirect) {
    callee.func.CallPacked(args.View(), result);
    return;
  }
  TVMValue ret;
  int ret_code = kTVMNullptr;
  auto* values = const_cast<TVMValue*>(args.values.data());
  auto* codes = const_cast<int*>(args.codes.data());
  if (callee.direct(values, codes, static_cast<int>(args.values.size()), &ret, &ret_code, nullptr) != 0) ThrowLastError();
  if (ret_code != kTVMNullptr) *result = TVMRetValue::MoveFromCHost(ret, ret_code);
}

// The instrument is called with the function, its name, whether it is about to run, its result and its arguments.
void Machine::CallInstrumented(const Callee& callee, const Function& func, const CallArgs& args, TVMRetValue* result) {
  constexpr int kSkipRun = 1;
  CallArgs seen;
  seen.values.resize(4);
  seen.codes.resize(4);
  seen.values.insert(seen.values.end(), args.values.begin(), args.values.end());
  seen.codes.insert(seen.codes.end(), args.codes.begin(), args.codes.end());
  TVMArgsSetter set(seen.values.data(), seen.codes.data());
  set(0, callee.func);
  set(1, func.name);
  set(2, true);
  set(3, nullptr);
  TVMRetValue answer;
  instrument_.CallPacked(seen.View(), &answer);
  if (answer.type_code() == kTVMArgInt && int64_t(answer) == kSkipRun) return;
  CallPacked(callee, func, args, result);
  set(2, false);
  set(3, static_cast<const TVMArgValue&>(*result));
  instrument_.CallPacked(seen.View(), &answer);
}

TVMRetValue Machine::InvokeClosure(const ObjectRef& object, TVMArgs args, int first) {
  auto* closure = object.as<ClosureObj>();
  if (closure == nullptr) {
    if (auto* func = object.as<PackedFuncObj>()) {
      TVMRetValue result;
      PackedFunc(ObjectPtr<Object>(func)).CallPacked(TVMArgs(args.values + first, args.type_codes + first, args.num_args - first), &result);
      return result;
    }
    ThrowTypeError("invoke_closure needs a closure, got ", object.defined() ? ForeignTypeName(object.get()) : "None");
  }
  if (closure->executable.get() != exec_) ThrowValueError("the closure was made by another executable's machine");
  std::vector<TVMRetValue> values = closure->captured;
  for (int i = first; i < args.num_args; ++i) values.push_back(AsNativeValue(args[i]));
  return Run(closure->function, std::move(values));
}

void Machine::CheckCount(const Function& func, size_t given) const {
  if (given != static_cast<size_t>(func.num_args)) {
    std::string names;
    for (const std::string& name : func.params) names += (names.empty() ? "" : ", ") + name;
    ThrowValueError("'", func.name, "' has ", func.num_args, " parameters (", names, "), got ", given, " arguments");
  }
}

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
