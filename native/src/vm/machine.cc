// The interpreter of the virtual machine's code.
#include "machine.h"

#include <tvm/runtime/registry.h>

#include <algorithm>

#include "../interrupt.h"

namespace tvm {
namespace runtime {
namespace vm {

TVM_REGISTER_OBJECT_TYPE(ClosureObj);

namespace {

constexpr size_t kMaxFrames = size_t{1} << 22;
constexpr DLDevice kHost{kDLCPU, 0};
constexpr DLDataType kInt64{kDLInt, 64, 1};
constexpr DLDataType kInt32{kDLInt, 32, 1};

[[noreturn]] void ThrowKind(const char* wanted, const ObjectRef& found) {
  ThrowTypeError("the virtual machine expected ", wanted, ", got ", found.defined() ? ForeignTypeName(found.get()) : "nothing");
}

template <class T>
T* As(const ObjectRef& value, const char* wanted) {
  // kinds are final, so that one comparison decides
  if (!value.defined() || value.get()->type_index() != TypeIndexOf<T>()) ThrowKind(wanted, value);
  return static_cast<T*>(value.get_mutable());
}

NDArrayObj* AsTensor(const ObjectRef& value) { return As<NDArrayObj>(value, "a tensor"); }

ObjectRef Scalar(int64_t value, DLDataType dtype) {
  NDArray array = NDArray::Empty({}, dtype, kHost);
  if (dtype.bits == 64) *static_cast<int64_t*>(array->data) = value;
  else *static_cast<int32_t*>(array->data) = static_cast<int32_t>(value);
  return array;
}

int64_t ElementAt(const DLTensor& tensor, int64_t i) {
  const char* data = static_cast<const char*>(tensor.data) + tensor.byte_offset;
  switch (tensor.dtype.bits) {
    case 1: return reinterpret_cast<const uint8_t*>(data)[i];
    case 8: return tensor.dtype.code == kDLInt ? reinterpret_cast<const int8_t*>(data)[i] : reinterpret_cast<const uint8_t*>(data)[i];
    case 16: return reinterpret_cast<const int16_t*>(data)[i];
    case 32: return reinterpret_cast<const int32_t*>(data)[i];
    default: return reinterpret_cast<const int64_t*>(data)[i];
  }
}

NDArray OnHost(const ObjectRef& value) {
  NDArray array(ObjectPtr<NDArrayObj>(AsTensor(value)));
  bool is_integer = array->dtype.code == kDLInt || array->dtype.code == kDLUInt;
  if (!is_integer || array->dtype.lanes != 1) ThrowTypeError("the virtual machine expected an integer tensor, got ", DLDataType2String(array->dtype));
  return array->device.device_type == kDLCPU ? array : array.CopyTo(kHost);
}

int64_t Integer(const ObjectRef& value) {
  NDArray array = OnHost(value);
  if (DataBytes(*array.tensor()) == 0) ThrowValueError("the virtual machine expected a number, got a tensor without elements");
  return ElementAt(*array.tensor(), 0);
}

std::vector<int64_t> ShapeIn(const ObjectRef& value) {
  NDArray array = OnHost(value);
  if (array->ndim > 1) ThrowValueError("a shape needs a tensor of one axis, got ", array->ndim);
  std::vector<int64_t> shape(array->ndim == 0 ? 1 : array->shape[0]);
  for (size_t i = 0; i < shape.size(); ++i) shape[i] = ElementAt(*array.tensor(), static_cast<int64_t>(i));
  return shape;
}

DLDataType TypeAt(const Instruction& instruction, size_t i) {
  return {static_cast<uint8_t>(instruction[i]), static_cast<uint8_t>(instruction[i + 1]), static_cast<uint16_t>(instruction[i + 2])};
}

std::vector<ObjectRef> Collect(const ObjectRef* registers, const Instruction& instruction, size_t first) {
  std::vector<ObjectRef> values;
  values.reserve(instruction.fields.size() - first);
  for (size_t i = first; i < instruction.fields.size(); ++i) values.push_back(registers[instruction[i]]);
  return values;
}

ObjectRef FieldOf(const ObjectRef& object, int64_t index) {
  auto* adt = As<ADTObj>(object, "a tuple");
  if (index < 0 || index >= static_cast<int64_t>(adt->fields.size())) {
    ThrowValueError("the virtual machine read field ", index, " of a tuple of ", adt->fields.size());
  }
  return adt->fields[index];
}

ObjectRef ShapeOf(const ObjectRef& value) {
  NDArrayObj* tensor = AsTensor(value);
  NDArray shape = NDArray::Empty({static_cast<int64_t>(tensor->shape.size())}, kInt64, kHost);
  std::copy(tensor->shape.begin(), tensor->shape.end(), static_cast<int64_t*>(shape->data));
  return shape;
}

ObjectRef Reshaped(const ObjectRef& value, const ObjectRef& shape) {
  NDArray array(ObjectPtr<NDArrayObj>(AsTensor(value)));
  std::vector<int64_t> extents = ShapeIn(shape);
  int64_t have = 1, want = 1;
  for (int64_t extent : array.Shape()) have *= extent;
  for (int64_t extent : extents) want *= extent;
  if (have != want) {
    ThrowValueError("reshape needs a shape of ", have, " elements, got ", ShapeText(extents.data(), static_cast<int>(extents.size())));
  }
  return array.CreateView(extents, array.DataType());
}

void AddArgument(const ObjectRef& value, KernelArgs* args) {
  if (value.defined() && value.get()->type_index() == TypeIndexOf<ADTObj>()) {
    for (const ObjectRef& field : static_cast<ADTObj*>(value.get_mutable())->fields) AddArgument(field, args);
    return;
  }
  TVMValue handle;
  handle.v_handle = &AsTensor(value)->dl_tensor;
  args->values.push_back(handle);
  args->codes.push_back(kTVMDLTensorHandle);
}

}  // namespace

void Flatten(const ObjectRef& value, std::vector<NDArray>* tensors) {
  if (auto* adt = value.as<ADTObj>()) {
    for (const ObjectRef& field : adt->fields) Flatten(field, tensors);
    return;
  }
  tensors->push_back(NDArray(ObjectPtr<NDArrayObj>(AsTensor(value))));
}

Machine::Machine(const Module& executable) : executable_(executable) {
  exec_ = dynamic_cast<Executable*>(executable.node());
  if (exec_ == nullptr) ThrowTypeError("the virtual machine needs an executable, got a module of type ", executable.node()->type_key());
  Module library = exec_->Library();
  for (const std::string& name : exec_->kernels) {
    PackedFunc func = library.defined() ? library.GetFunction(name, true) : PackedFunc();
    if (!func.defined()) ThrowValueError("the library has no function '", name, "', which the executable calls");
    kernels_.push_back({func, func.func()->direct});
  }
  constants_.resize(exec_->constants.size());
}

void Machine::Init(const std::vector<DLDevice>& devices, const std::vector<AllocatorType>& kinds) {
  devices_.clear();
  allocators_.clear();
  constants_.assign(exec_->constants.size(), ObjectRef());
  for (const VirtualDevice& wanted : exec_->devices) {
    auto fits = [&](const DLDevice& device) { return device.device_type == wanted.first.device_type; };
    auto it = std::find_if(devices.begin(), devices.end(), fits);
    if (it == devices.end()) ThrowValueError("the executable needs a device of kind ", DeviceName(wanted.first.device_type), ", which was not given");
    devices_.push_back(*it);
    allocators_.push_back(Allocator::Get(*it, kinds[it - devices.begin()]));
  }
}

void Machine::Enter(State* state, int64_t function, std::vector<ObjectRef> args, int64_t result, bool is_tail) {
  const Function& func = exec_->functions[function];
  if (args.size() != func.params.size()) ThrowValueError("'", func.name, "' has ", func.params.size(), " parameters, got ", args.size());
  if (is_tail && state->frames.size() > 1) {
    // the caller has nothing left to do: its place is free
    result = state->frames.back().result;
    state->registers.resize(state->frames.back().base);
    state->frames.pop_back();
  }
  if (state->frames.size() >= kMaxFrames) throw Error(Cat("RecursionError: '", func.name, "' is called ", kMaxFrames, " levels deep"));
  size_t base = state->registers.size();
  state->registers.resize(base + func.num_registers);
  std::move(args.begin(), args.end(), state->registers.begin() + base);
  state->frames.push_back({&func, 0, base, result});
}

ObjectRef Machine::Execute(int64_t function, const std::vector<ObjectRef>& args) {
  State state;
  Enter(&state, function, args, 0, false);
  size_t calls = 0;
  while (true) {
    Frame& frame = state.frames.back();
    ObjectRef* registers = state.registers.data() + frame.base;
    const Instruction& next = frame.func->code[frame.pc];
    switch (next.op) {
      case kMove: registers[next[1]] = registers[next[0]]; break;
      case kKillRegister: registers[next[0]] = ObjectRef(); break;
      case kInvokePacked:
        PollSignals();
        InvokePacked(&state, next, registers);
        break;
      case kGoto: frame.pc += next[0]; continue;
      case kIf: frame.pc += Integer(registers[next[0]]) == Integer(registers[next[1]]) ? next[2] : next[3]; continue;
      case kRet: {
        ObjectRef result = std::move(registers[next[0]]);
        int64_t target = frame.result;
        state.registers.resize(frame.base);
        state.frames.pop_back();
        if (state.frames.empty()) return result;
        state.registers[state.frames.back().base + target] = std::move(result);
        continue;
      }
      case kInvoke:
      case kInvokeClosure: {
        if (++calls % 64 == 0) PollSignals();
        ++frame.pc;
        if (next.op == kInvoke) Enter(&state, next[0], Collect(registers, next, 3), next[2], next.is_tail);
        else InvokeClosure(&state, next, registers);
        continue;
      }
      case kSetField: {
        FieldOf(registers[next[0]], next[1]);
        static_cast<ADTObj*>(registers[next[0]].get_mutable())->fields[next[1]] = registers[next[2]];
        break;
      }
      case kFatal: ThrowError("no clause of a match fits the value (function '", frame.func->name, "')");
      default: {
        // the register written is the third field of what has a count, the last of others
        ObjectRef value;
        if (given_ != nullptr && state.frames.size() == 1) value = GivenTensor(frame.pc, next, registers);
        if (!value.defined()) value = Value(next, registers);
        bool has_count = next.op == kAllocADT || next.op == kAllocClosure;
        size_t to = has_count ? 2 : next.op == kAllocTensor || next.op == kAllocStorage ? 6 : next.fields.size() - 1;
        registers[next[to]] = std::move(value);
      }
    }
    ++frame.pc;
  }
}

ObjectRef Machine::Value(const Instruction& next, const ObjectRef* registers) {
  switch (next.op) {
    case kAllocTensor: {
      std::vector<int64_t> shape(next.fields.begin() + 7, next.fields.end());
      return AllocTensor(As<StorageObj>(registers[next[0]], "a storage"), Integer(registers[next[1]]), shape, TypeAt(next, 2));
    }
    case kAllocTensorReg:
      return AllocTensor(As<StorageObj>(registers[next[0]], "a storage"), Integer(registers[next[1]]), ShapeIn(registers[next[2]]),
                         TypeAt(next, 3));
    case kAllocStorage: return AllocStorage(next, registers);
    case kAllocADT: return ADT(next[0], Collect(registers, next, 3));
    case kAllocClosure: {
      auto closure = make_object<ClosureObj>();
      closure->function = next[0];
      closure->captured = Collect(registers, next, 3);
      return ObjectRef(ObjectPtr<Object>(closure));
    }
    case kGetField: return FieldOf(registers[next[0]], next[1]);
    case kLoadConst: return Constant(next[0]);
    case kLoadConsti: return Scalar(next[0], kInt64);
    case kGetTag: return Scalar(As<ADTObj>(registers[next[0]], "a value of a data type")->tag, kInt32);
    case kShapeOf: return ShapeOf(registers[next[0]]);
    case kReshapeTensor: return Reshaped(registers[next[0]], registers[next[1]]);
    case kDeviceCopy: return NDArray(ObjectPtr<NDArrayObj>(AsTensor(registers[next[0]]))).CopyTo(DeviceOf(next[2]));
    default: ThrowError("the virtual machine cannot run ", OpcodeName(next.op));
  }
}

void Machine::InvokeClosure(State* state, const Instruction& call, const ObjectRef* registers) {
  auto* closure = As<ClosureObj>(registers[call[0]], "a function");
  std::vector<ObjectRef> args = closure->captured;
  for (ObjectRef& value : Collect(registers, call, 3)) args.push_back(std::move(value));
  Enter(state, closure->function, std::move(args), call[2], call.is_tail);
}

void Machine::InvokePacked(State* state, const Instruction& call, const ObjectRef* registers) {
  KernelArgs& args = state->args;
  args.values.clear();
  args.codes.clear();
  for (size_t i = 3; i < call.fields.size(); ++i) AddArgument(registers[call[i]], &args);
  CallKernel(state->frames.back(), call[0], args);
}

void Machine::CallKernel(const Frame&, int64_t index, const KernelArgs& args) {
  const Kernel& kernel = kernels_[index];
  int count = static_cast<int>(args.values.size());
  auto* values = const_cast<TVMValue*>(args.values.data());
  auto* codes = const_cast<int*>(args.codes.data());
  if (kernel.direct != nullptr) {
    TVMValue ret;
    int ret_code = kTVMNullptr;
    if (kernel.direct(values, codes, count, &ret, &ret_code, nullptr) != 0) ThrowLastError();
    return;
  }
  TVMRetValue ignored;
  kernel.func.CallPacked(TVMArgs(values, codes, count), &ignored);
}

ObjectRef Machine::AllocStorage(const Instruction& instruction, const ObjectRef* registers) {
  int64_t size = Integer(registers[instruction[0]]);
  if (size < 0) ThrowValueError("the virtual machine cannot allocate ", size, " bytes");
  return ObjectRef(ObjectPtr<Object>(make_object<StorageObj>(allocators_[instruction[5]], static_cast<size_t>(size))));
}

ObjectRef Machine::AllocTensor(StorageObj* storage, int64_t offset, const std::vector<int64_t>& shape, DLDataType dtype) const {
  NDArray tensor = NDArray::FromMemory(static_cast<char*>(storage->block.data) + offset, shape, dtype, storage->device(),
                                       ObjectPtr<Object>(storage));
  size_t bytes = DataBytes(*tensor.tensor());
  if (offset < 0 || offset + bytes > storage->block.size) {
    ThrowValueError("a tensor of ", bytes, " bytes at offset ", offset, " does not fit into a storage of ", storage->block.size);
  }
  return tensor;
}

ObjectRef Machine::GivenTensor(size_t pc, const Instruction& instruction, const ObjectRef* registers) const {
  auto it = given_->allocations.find(pc);
  if (it == given_->allocations.end() || it->second >= given_->arrays.size()) return ObjectRef();
  const NDArray& array = given_->arrays[it->second];
  bool is_known = instruction.op == kAllocTensor;
  std::vector<int64_t> shape = is_known ? std::vector<int64_t>(instruction.fields.begin() + 7, instruction.fields.end())
                                        : ShapeIn(registers[instruction[2]]);
  DLDevice device = As<StorageObj>(registers[instruction[0]], "a storage")->device();
  bool is_there = array->device.device_type == device.device_type && array->device.device_id == device.device_id;
  bool is_aligned = (reinterpret_cast<uintptr_t>(array->data) + array->byte_offset) % kDataAlignment == 0;
  bool fits = is_there && is_aligned && array->byte_offset == 0 && array.IsContiguous() &&
              array.Shape() == ShapeTuple(shape) && TypeEqual(array.DataType(), TypeAt(instruction, is_known ? 2 : 3));
  return fits ? ObjectRef(array) : ObjectRef();
}

ObjectRef Machine::Constant(int64_t index) {
  ObjectRef& value = constants_[index];
  if (value.defined()) return value;
  const NDArray& array = exec_->constants[index];
  if (!array.defined()) {
    ThrowValueError("the constant '", exec_->late_bound_names.at(index), "' has no value yet", "; load it with load_late_bound_consts");
  }
  DLDevice device = DeviceOf(exec_->constant_devices[index]);
  value = array->device.device_type == device.device_type ? ObjectRef(array) : array.CopyTo(device);
  return value;
}

ObjectRef Machine::Run(const std::string& name, const std::vector<ObjectRef>& args) {
  if (devices_.empty()) ThrowValueError("the virtual machine has no device yet: call init(device, id, allocator) first");
  exec_->FindFunction(name);
  return Execute(exec_->FunctionIndex(name), args);
}

}  // namespace vm
}  // namespace runtime
}  // namespace tvm
