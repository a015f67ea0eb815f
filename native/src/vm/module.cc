// The virtual machine as a module: inputs, runs and results by name.
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <iterator>

#include "machine.h"

namespace tvm {
namespace runtime {
namespace vm {
namespace {

bool IsUsable(const DLTensor& tensor, DLDevice device) {
  auto address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  return tensor.device.device_type == device.device_type && tensor.device.device_id == device.device_id && IsContiguous(tensor) &&
         address % kDataAlignment == 0;
}

// Whether an array may share memory with a value.
bool ReadsFrom(const ObjectRef& value, const NDArray& array) {
  if (auto* adt = value.as<ADTObj>()) {
    return std::any_of(adt->fields.begin(), adt->fields.end(), [&](const ObjectRef& field) { return ReadsFrom(field, array); });
  }
  auto* read = value.as<NDArrayObj>();
  if (read == nullptr) return true;  // functions are not looked into
  auto begin = [](const DLTensor& tensor) { return static_cast<const char*>(tensor.data) + tensor.byte_offset; };
  const DLTensor &from = read->dl_tensor, &to = *array.tensor();
  return begin(from) < begin(to) + DataBytes(to) && begin(to) < begin(from) + DataBytes(from);
}

}  // namespace

// The value where compiled code can read it: tensors elsewhere, or placed badly, are copied.
ObjectRef Machine::OnDevice(const TVMArgValue& value, int64_t device, const std::string& what) const {
  DLDevice wanted = DeviceOf(device);
  if (value.type_code() == kTVMDLTensorHandle || value.type_code() == kTVMNDArrayHandle) {
    auto* tensor = static_cast<DLTensor*>(value.value().v_handle);
    if (value.type_code() == kTVMNDArrayHandle && IsUsable(*tensor, wanted)) return value.operator NDArray();
    NDArray copy = NDArray::Empty(std::vector<int64_t>(tensor->shape, tensor->shape + tensor->ndim), tensor->dtype, wanted);
    copy.CopyFrom(tensor);
    return copy;
  }
  ObjectRef object = value.type_code() == kTVMObjectHandle ? value.operator ObjectRef() : ObjectRef();
  if (!object.as<ADTObj>() && !object.as<ClosureObj>()) {
    ThrowTypeError(what, " needs a tensor, a tuple or a value of a data type, got ",
                   object.defined() ? ForeignTypeName(object.get()) : ArgTypeCode2Str(value.type_code()));
  }
  return object;
}

void Machine::SetInput(const std::string& name, TVMArgs args, int first) {
  const Function& func = exec_->FindFunction(name);
  size_t given = static_cast<size_t>(args.num_args - first);
  if (given != func.params.size()) ThrowValueError("'", name, "' takes ", func.params.size(), " inputs, got ", given);
  std::vector<ObjectRef> values;
  for (size_t i = 0; i < given; ++i) {
    values.push_back(OnDevice(args[first + static_cast<int>(i)], func.param_devices.at(i), Cat("input ", i, " ('", func.params[i], "')")));
  }
  SharedUse& use = uses_[name];
  for (size_t i = 0; i < given; ++i) use.Set(i);
  inputs_[name] = std::move(values);
}

void Machine::SetOutputs(const std::string& name, TVMArgs args, int first) {
  const Function& func = exec_->FindFunction(name);
  GivenOutputs given;
  for (int i = first; i < args.num_args; ++i) {
    given.arrays.push_back(args[i]);
    if (!given.arrays.back().defined()) ThrowTypeError("set_outputs needs arrays, got None");
  }
  given.allocations = ResultAllocations(func);
  uses_[name].Set(func.params.size());
  outputs_[name] = std::move(given);
}

void Machine::InvokeStateful(const std::string& name) {
  result_ = Invoke(name);
  result_use_.BeginRun([](size_t) { return std::string(); });
}

// (function, input's number or name, value)
void Machine::SetOneInput(TVMArgs args) {
  if (args.num_args != 3) ThrowTypeError("set_one_input takes a function, an input and its value, got ", args.num_args, " arguments");
  std::string name = args[0];
  const Function& func = exec_->FindFunction(name);
  int64_t index = -1;
  if (args[1].is_str()) {
    auto it = std::find(func.params.begin(), func.params.end(), std::string(args[1]));
    if (it == func.params.end()) ThrowValueError("'", name, "' has no input '", std::string(args[1]), "'");
    index = it - func.params.begin();
  } else {
    index = args[1];
  }
  if (index < 0 || index >= static_cast<int64_t>(func.params.size())) {
    ThrowValueError("'", name, "' takes ", func.params.size(), " inputs, got index ", index);
  }
  ObjectRef value = OnDevice(args[2], func.param_devices.at(index), Cat("input ", index, " ('", func.params[index], "')"));
  uses_[name].Set(index);
  std::vector<ObjectRef>& values = inputs_[name];
  values.resize(func.params.size());
  values[index] = std::move(value);
}

ObjectRef Machine::Invoke(const std::string& name) {
  const Function& func = exec_->FindFunction(name);
  uses_[name].BeginRun([&](size_t slot) {
    return slot < func.params.size() ? Cat("input ", slot, " ('", func.params[slot], "') of '", name, "'") : Cat("the outputs of '", name, "'");
  });
  const std::vector<ObjectRef> values = inputs_[name];  // the program may call back and set others
  for (size_t i = 0; i < func.params.size(); ++i) {
    if (i >= values.size() || !values[i].defined()) ThrowValueError("input ", i, " ('", func.params[i], "') of '", name, "' is not set");
  }
  auto it = outputs_.find(name);
  if (it == outputs_.end()) return Run(name, values);
  GivenOutputs given = std::move(it->second);
  outputs_.erase(it);
  for (auto place = given.allocations.begin(); place != given.allocations.end();) {
    // what is read while it is written gets its results in the end
    auto reads = [&](const ObjectRef& value) { return ReadsFrom(value, given.arrays[place->second]); };
    bool is_input = place->second < given.arrays.size() && std::any_of(values.begin(), values.end(), reads);
    place = is_input ? given.allocations.erase(place) : std::next(place);
  }
  struct Scope {
    const GivenOutputs*& place;
    ~Scope() { place = nullptr; }
  } scope{given_};
  given_ = &given;
  ObjectRef result = Run(name, values);
  TakeOutputs(name, result, given.arrays);
  return result;
}

// What is not in the given arrays already is copied there.
void Machine::TakeOutputs(const std::string& name, const ObjectRef& result, const std::vector<NDArray>& given) const {
  std::vector<NDArray> found;
  Flatten(result, &found);
  if (found.size() != given.size()) {
    ThrowValueError("'", name, "' has ", found.size(), " outputs, set_outputs was given ", given.size());
  }
  for (size_t i = 0; i < found.size(); ++i) {
    bool fits = found[i].Shape() == given[i].Shape() && TypeEqual(found[i].DataType(), given[i].DataType());
    if (!fits) {
      ThrowValueError("output ", i, " of '", name, "' is ", DLDataType2String(found[i].DataType()), " of shape ",
                      ShapeText(found[i]->shape, found[i]->ndim), ", the array given is ", DLDataType2String(given[i].DataType()),
                      " of shape ", ShapeText(given[i]->shape, given[i]->ndim));
    }
    if (found[i]->data != given[i]->data) NDArray(given[i]).CopyFrom(found[i]);
  }
}

std::vector<NDArray> Machine::Outputs() const {
  if (!result_.defined()) ThrowValueError("there are no outputs yet: call invoke_stateful first");
  std::vector<NDArray> tensors;
  Flatten(result_, &tensors);
  return tensors;
}

PackedFunc Machine::GetFunction(const String& name, const ObjectPtr<Object>& self) {
  if (name == "init") {  // (device kind, device number, allocator, ...)
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
      if (args.num_args % 3 != 0 || args.num_args == 0) ThrowTypeError("init takes kind, number and allocator of each device");
      std::vector<DLDevice> devices;
      std::vector<AllocatorType> kinds;
      for (int i = 0; i < args.num_args; i += 3) {
        devices.push_back(DLDevice{static_cast<DLDeviceType>(int(args[i])), int(args[i + 1])});
        kinds.push_back(static_cast<AllocatorType>(int(args[i + 2])));
      }
      Init(devices, kinds);
    });
  }
  if (name == "set_input") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) { SetInput(args[0], args, 1); });
  }
  if (name == "set_one_input") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) { SetOneInput(args); });
  }
  if (name == "set_outputs") {  // (function, array, ...): where the next run of the function leaves its results
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) { SetOutputs(args[0], args, 1); });
  }
  if (name == "invoke") return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) { *rv = Invoke(args[0]); });
  if (name == "invoke_stateful") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) { InvokeStateful(args[0]); });
  }
  if (name == "invoke_with") {  // (function, input, ...): sets the inputs and runs, with no other thread's call between
    return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
      SetInput(args[0], args, 1);
      *rv = Invoke(args[0]);
    });
  }
  if (name == "invoke_stateful_with") {  // likewise
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
      SetInput(args[0], args, 1);
      InvokeStateful(args[0]);
    });
  }
  if (name == "invoke_with_outputs") {  // (function, number of inputs or -1 for those that are set, input, ..., output, ...)
    return Exclusive(self, [this](TVMArgs args, TVMRetValue*) {
      const int inputs = args[1];
      const int first = 2 + std::max(inputs, 0);
      if (first > args.num_args) ThrowValueError("invoke_with_outputs was told of ", inputs, " inputs, got ", args.num_args - 2, " arrays");
      if (inputs >= 0) SetInput(args[0], TVMArgs(args.values, args.type_codes, first), 2);
      SetOutputs(args[0], args, first);
      Invoke(args[0]);
    });
  }
  if (name == "invoke_return_to_device") {  // (function, device kind, device number)
    return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
      DLDevice device{static_cast<DLDeviceType>(int(args[1])), int(args[2])};
      std::vector<ObjectRef> copies;
      std::vector<NDArray> found;
      ObjectRef result = Invoke(args[0]);
      Flatten(result, &found);
      for (const NDArray& array : found) copies.push_back(array.CopyTo(device));
      *rv = result.as<ADTObj>() ? ObjectRef(ADT::Tuple(copies)) : copies.at(0);
    });
  }
  if (name == "get_output") {
    return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
      std::vector<NDArray> outputs = Outputs();
      int64_t i = args[0];
      result_use_.Fetch(i);
      if (i < 0 || i >= static_cast<int64_t>(outputs.size())) ThrowValueError("there are ", outputs.size(), " outputs, got index ", i);
      *rv = outputs[i];
    });
  }
  if (name == "get_num_outputs") {
    return Exclusive(self, [this](TVMArgs, TVMRetValue* rv) { *rv = static_cast<int64_t>(Outputs().size()); });
  }
  if (name == "get_input_index") {  // (input, function): -1 if there is none
    return Exclusive(self, [this](TVMArgs args, TVMRetValue* rv) {
      const Function& func = exec_->FindFunction(args[1]);
      auto it = std::find(func.params.begin(), func.params.end(), std::string(args[0]));
      *rv = it == func.params.end() ? int64_t{-1} : static_cast<int64_t>(it - func.params.begin());
    });
  }
  if (name == "load_late_bound_consts" || name == "load_late_bound_consts_from_map") {
    PackedFunc load = executable_.GetFunction(name);
    return Exclusive(self, [this, load](TVMArgs args, TVMRetValue* rv) {
      load.CallPacked(args, rv);
      constants_.assign(exec_->constants.size(), ObjectRef());
    });
  }
  return nullptr;
}

Module CreateMachine(const Module& executable) { return Module(ObjectPtr<ModuleNode>(make_object<Machine>(executable))); }

TVM_REGISTER_GLOBAL("runtime._VirtualMachine").set_body_typed([](Module executable) {
  if (!executable.defined()) ThrowTypeError("the virtual machine needs an executable, got None");
  return CreateMachine(executable);
});

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
