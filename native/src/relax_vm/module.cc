// Relax's virtual machine as a module: inputs, runs and results by name.
#include <tvm/runtime/registry.h>

#include <algorithm>

#include "../container.h"
#include "machine.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

NDArray CopyOf(const DLTensor& tensor, DLDevice device) {
  NDArray copy = NDArray::Empty(std::vector<int64_t>(tensor.shape, tensor.shape + tensor.ndim), tensor.dtype, device);
  copy.CopyFrom(&tensor);
  return copy;
}

// Tensors of a value that `convert` makes others of; tuples are taken apart.
template <class F>
TVMRetValue WithTensors(const TVMArgValue& value, const F& convert) {
  TVMRetValue result;
  if (value.type_code() == kTVMNDArrayHandle) {
    result = convert(value.operator NDArray());
    return result;
  }
  if (value.type_code() == kTVMObjectHandle) {
    ObjectRef object = value;
    if (auto* tuple = object.as<ArrayNode>()) {
      auto copy = make_object<ArrayNode>();
      for (const TVMRetValue& item : tuple->items) copy->items.push_back(WithTensors(item, convert));
      result = ObjectRef(ObjectPtr<Object>(copy));
      return result;
    }
  }
  result = value;
  return result;
}

}  // namespace

TVMRetValue AsNativeValue(const TVMArgValue& value) {
  TVMRetValue result;
  if (value.type_code() == kTVMDLTensorHandle) {
    const DLTensor& tensor = *static_cast<DLTensor*>(value.value().v_handle);
    result = CopyOf(tensor, tensor.device);
    return result;
  }
  if (value.type_code() != kTVMObjectHandle) {
    result = value;
    return result;
  }
  ObjectRef object = value;
  if (object.get()->type_index() == kRuntimeForeign) object = AsNativeContainer(object, true);
  auto* array = object.as<ArrayNode>();
  if (array == nullptr) {
    result = object;
    return result;
  }
  auto tuple = make_object<ArrayNode>();
  for (const TVMRetValue& item : array->items) tuple->items.push_back(AsNativeValue(item));
  result = ObjectRef(ObjectPtr<Object>(tuple));
  return result;
}

// Compiled code needs compact tensors on its device, at addresses that are multiples of an alignment.
TVMRetValue Machine::OnDevice(const TVMArgValue& value) const {
  DLDevice device = devices_.at(0);
  return WithTensors(AsNativeValue(value), [device](const NDArray& array) {
    auto address = reinterpret_cast<uintptr_t>(array->data) + array->byte_offset;
    bool fits = array->device.device_type == device.device_type && array->device.device_id == device.device_id &&
                array.IsContiguous() && address % kDataAlignment == 0;
    return fits ? array : CopyOf(*array.tensor(), device);
  });
}

std::vector<TVMRetValue> Machine::OnDevice(TVMArgs args, int first) const {
  std::vector<TVMRetValue> values;
  for (int i = first; i < args.num_args; ++i) values.push_back(OnDevice(args[i]));
  return values;
}

void Machine::SetInput(const std::string& name, TVMArgs args, int first) {
  const Function& func = exec_->FindFunction(name);
  CheckCount(func, static_cast<size_t>(args.num_args - first));
  std::vector<TVMRetValue> values = OnDevice(args, first);
  for (size_t i = 0; i < values.size(); ++i) uses_[name].Set(i);
  inputs_[name] = std::move(values);
}

void Machine::InvokeStateful(const std::string& name) {
  const Function& func = exec_->FindFunction(name);
  auto found = inputs_.find(name);
  if (found == inputs_.end() && func.num_args > 0) ThrowValueError("the inputs of '", name, "' are not set: call set_input first");
  uses_[name].BeginRun([&](size_t slot) { return Cat("input ", slot, " ('", func.params.at(slot), "') of '", name, "'"); });
  std::vector<TVMRetValue> values = found == inputs_.end() ? std::vector<TVMRetValue>() : found->second;
  outputs_[name] = Run(exec_->FunctionIndex(name), std::move(values));
}

// The result, or the part of it that indices lead to.
TVMRetValue Machine::Output(const std::string& name, TVMArgs indices, int first) {
  exec_->FindFunction(name);
  auto found = outputs_.find(name);
  if (found == outputs_.end()) ThrowValueError("there are no outputs of '", name, "' yet: call invoke_stateful first");
  uses_[name].Fetch(0);
  TVMRetValue value = found->second;
  for (int i = first; i < indices.num_args; ++i) {
    auto* tuple = value.type_code() == kTVMObjectHandle ? value.operator ObjectRef().as<ArrayNode>() : nullptr;
    int64_t index = indices[i];
    if (tuple == nullptr) ThrowValueError("an output of '", name, "' is no tuple: it has no part ", index);
    if (index < 0 || index >= static_cast<int64_t>(tuple->items.size())) {
      ThrowValueError("an output of '", name, "' is a tuple of ", tuple->items.size(), ", got index ", index);
    }
    TVMRetValue part = tuple->items[index];
    value = part;
  }
  return value;
}

PackedFunc Machine::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  if (name == "vm_initialization") {  // (device kind, device number, allocator, ...)
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
      if (args.num_args % 3 != 0 || args.num_args == 0) ThrowTypeError("vm_initialization takes kind, number and allocator of each device");
      std::vector<DLDevice> devices;
      std::vector<vm::AllocatorType> kinds;
      for (int i = 0; i < args.num_args; i += 3) {
        devices.push_back(DLDevice{static_cast<DLDeviceType>(int(args[i])), int(args[i + 1])});
        kinds.push_back(static_cast<vm::AllocatorType>(int(args[i + 2])));
      }
      Init(devices, kinds);
    });
  }
  if (name == "invoke_closure") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) { *rv = InvokeClosure(args[0], args, 1); });
  }
  if (name == "save_function") {  // (function, name, whether calls return the result, argument, ...)
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
      const Function& func = exec_->FindFunction(args[0]);
      std::string saved = args[1];
      if (exec_->FunctionIndex(saved) >= 0) ThrowValueError("the executable has a function '", saved, "' already");
      CheckCount(func, static_cast<size_t>(args.num_args - 3));
      saved_[saved] = Saved{exec_->FunctionIndex(func.name), OnDevice(args, 3), bool(args[2])};
    });
  }
  if (name == "set_input") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) { SetInput(args[0], args, 1); });
  }
  if (name == "set_input_with_param_module") {  // (function, input, ..., module with the others)
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
      if (args.num_args < 2) ThrowTypeError("set_input_with_param_module takes a function, inputs and a module");
      Module params = args[args.num_args - 1];
      PackedFunc get = params.GetFunction("get_params");
      if (get == nullptr) ThrowValueError("the module of parameters has no function 'get_params'");
      std::vector<TVMRetValue> values;
      for (int i = 1; i + 1 < args.num_args; ++i) values.push_back(AsNativeValue(args[i]));
      Array<ObjectRef> found = get();
      for (const ObjectRef& value : found) {
        values.emplace_back();
        values.back() = value;
      }
      CallArgs all;
      for (const TVMRetValue& value : values) {
        all.values.push_back(value.value());
        all.codes.push_back(value.type_code());
      }
      SetInput(args[0], all.View(), 0);
    });
  }
  if (name == "invoke_stateful") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) { InvokeStateful(args[0]); });
  }
  if (name == "get_output") {  // (function, index, index within it, ...)
    return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) { *rv = Output(args[0], args, 1); });
  }
  if (name == "get_output_arity") {  // likewise; -1 of what is no tuple
    return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
      TVMRetValue value = Output(args[0], args, 1);
      auto* tuple = value.type_code() == kTVMObjectHandle ? value.operator ObjectRef().as<ArrayNode>() : nullptr;
      *rv = tuple == nullptr ? int64_t{-1} : static_cast<int64_t>(tuple->items.size());
    });
  }
  if (name == "get_function_arity") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) { *rv = exec_->FindFunction(args[0]).num_args; });
  }
  if (name == "get_function_param_name") {
    return PackedFunc([this, self](TVMArgs args, TVMRetValue* rv) {
      const Function& func = exec_->FindFunction(args[0]);
      int64_t i = args[1];
      if (i < 0 || i >= func.num_args) ThrowValueError("'", func.name, "' has ", func.num_args, " parameters, got index ", i);
      *rv = func.params[i];
    });
  }
  if (name == "set_instrument") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
      instrument_ = args[0].is_null() ? PackedFunc() : args[0].operator PackedFunc();
    });
  }
  auto saved = saved_.find(name);
  if (saved != saved_.end()) {
    return Exclusive(self, [this, call = saved->second](TVMArgs, TVMRetValue* rv) {
      TVMRetValue result = Run(call.function, call.args);
      if (call.returns) *rv = std::move(result);
    });
  }
  Word index = exec_->FunctionIndex(name);
  if (index < 0 || exec_->functions[index].kind == FunctionKind::kPacked) return nullptr;
  return Exclusive(self, [this, index](TVMArgs args, TVMRetValue* rv) {
    std::vector<TVMRetValue> values;
    for (int i = 0; i < args.num_args; ++i) values.push_back(AsNativeValue(args[i]));
    *rv = Run(index, std::move(values));
  });
}

Module CreateMachine(const Module& executable) { return Module(ObjectPtr<ModuleNode>(make_object<Machine>(executable))); }

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
