// Functions that programs of relax's virtual machine call: memory, tuples, closures, devices.
#include "builtin.h"

#include <tvm/runtime/registry.h>


#include "../container.h"
#include "machine.h"

namespace tvm {
namespace runtime {
namespace relax_vm {

constexpr DLDevice kHost{kDLCPU, 0};

const DLTensor& HostTensor(const TVMArgValue& value, const char* who) {
  DLTensor* tensor = value;
  if (tensor == nullptr) ThrowTypeError(who, " needs a tensor, got None");
  if (tensor->device.device_type != kDLCPU) ThrowValueError(who, " needs a tensor on the host, got one on device kind ", tensor->device.device_type);
  if (!IsContiguous(*tensor)) ThrowValueError(who, " needs a compact tensor");
  return *tensor;
}

bool IsShape(const TVMArgValue& value) {
  if (value.type_code() != kTVMObjectHandle) return false;
  ObjectRef object = value;
  if (object.get()->type_index() == kRuntimeForeign) object = AsNativeContainer(object, true);
  return object.as<ShapeTupleObj>() != nullptr;
}

std::string KindName(const TVMArgValue& value) {
  switch (value.type_code()) {
    case kTVMNDArrayHandle:
    case kTVMDLTensorHandle: return "Tensor";
    case kTVMObjectHandle: return IsShape(value) ? "Shape" : ForeignTypeName(static_cast<Object*>(value.value().v_handle));
    default: return ArgTypeCode2Str(value.type_code());
  }
}

ObjectPtr<ArrayNode> TupleIn(const TVMArgValue& value, const std::string& who) {
  ObjectRef object = value.type_code() == kTVMObjectHandle ? value.operator ObjectRef() : ObjectRef();
  if (object.defined() && object.get()->type_index() == kRuntimeForeign) object = AsNativeContainer(object, true);
  if (auto* adt = object.as<ADTObj>()) {
    auto tuple = make_object<ArrayNode>();
    for (const ObjectRef& field : adt->fields) {
      tuple->items.emplace_back();
      tuple->items.back() = field;
    }
    return tuple;
  }
  if (object.as<ArrayNode>() == nullptr) ThrowTypeError(who, " needs a Tuple, got ", KindName(value));
  return GetObjectPtr<ArrayNode>(static_cast<ArrayNode*>(object.get_mutable()));
}

namespace {

NDArray ArrayIn(const TVMArgValue& value, const char* who) {
  NDArray array = value;
  if (!array.defined()) ThrowTypeError(who, " needs a tensor, got None");
  return array;
}

NDArray Reshaped(const NDArray& array, const ShapeTuple& shape) {
  int64_t have = 1, want = 1;
  for (int64_t extent : array.Shape()) have *= extent;
  for (int64_t extent : shape) want *= extent;
  if (have != want) ThrowValueError("reshape needs a shape of ", have, " elements, got ", shape);
  return array.CreateView(shape, array.DataType());
}

int64_t PositiveProduct(const ShapeTuple& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) ThrowValueError("there is no memory of shape ", shape);
  }
  return product;
}

// (machine, shape, device, dtype, memory scope)
ObjectRef AllocStorage(void* state, ShapeTuple shape, int64_t device, DLDataType dtype, String) {
  int64_t bytes = PositiveProduct(shape);
  if (__builtin_mul_overflow(bytes, (dtype.bits * dtype.lanes + 7) / 8, &bytes)) ThrowValueError("there is no memory of shape ", shape);
  Machine* machine = Machine::Of(state);
  machine->DeviceAt(device);
  std::shared_ptr<vm::Allocator> allocator = machine->AllocatorAt(device);
  return ObjectRef(ObjectPtr<Object>(make_object<vm::StorageObj>(std::move(allocator), static_cast<size_t>(bytes))));
}

NDArray AllocTensor(ObjectRef memory, int64_t offset, ShapeTuple shape, DLDataType dtype) {
  auto* storage = memory.as<vm::StorageObj>();
  if (storage == nullptr) ThrowTypeError("alloc_tensor needs a storage, got ", memory.defined() ? ForeignTypeName(memory.get()) : "None");
  PositiveProduct(shape);
  NDArray tensor = NDArray::FromMemory(static_cast<char*>(storage->block.data) + offset, std::vector<int64_t>(shape.begin(), shape.end()),
                                       dtype, storage->device(), ObjectPtr<Object>(storage));
  size_t bytes = DataBytes(*tensor.tensor());
  if (offset < 0 || static_cast<size_t>(offset) + bytes > storage->block.size) {
    ThrowValueError("a tensor of ", bytes, " bytes at offset ", offset, " does not fit into a storage of ", storage->block.size);
  }
  return tensor;
}

bool ReadCondition(const TVMArgValue& value) {
  if (value.type_code() == kTVMArgInt || value.type_code() == kTVMArgBool) return value.value().v_int64 != 0;
  NDArray array = ArrayIn(value, "a condition");
  if (array->device.device_type != kDLCPU) array = array.CopyTo(kHost);
  if (DataBytes(*array.tensor()) == 0) ThrowValueError("a condition needs a tensor with an element");
  const char* data = DataOf<char>(*array.tensor());
  bool is_integer = array->dtype.code == kDLInt || array->dtype.code == kDLUInt || array->dtype.code == kDLBool;
  if (!is_integer) ThrowTypeError("a condition needs a tensor of bool or integers, got ", DLDataType2String(array->dtype));
  int bytes = (array->dtype.bits + 7) / 8;
  for (int i = 0; i < bytes; ++i) {
    if (data[i] != 0) return true;
  }
  return false;
}

int64_t IntegerAt(const DLTensor& tensor, int64_t i) {
  switch (tensor.dtype.bits) {
    case 32: return DataOf<int32_t>(tensor)[i];
    case 64: return DataOf<int64_t>(tensor)[i];
    default: ThrowTypeError("a shape needs a tensor of int32 or int64, got ", DLDataType2String(tensor.dtype));
  }
}

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.alloc_storage").set_body_typed(AllocStorage);
TVM_REGISTER_GLOBAL("vm.builtin.alloc_tensor").set_body_typed(AllocTensor);

TVM_REGISTER_GLOBAL("vm.builtin.copy").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = args[0]; });
TVM_REGISTER_GLOBAL("vm.builtin.null_value").set_body([](TVMArgs, TVMRetValue* rv) { *rv = nullptr; });

TVM_REGISTER_GLOBAL("vm.builtin.reshape").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = Reshaped(ArrayIn(args[0], "reshape"), args[1].operator ShapeTuple());
});

TVM_REGISTER_GLOBAL("vm.builtin.ensure_zero_offset").set_body([](TVMArgs args, TVMRetValue* rv) {
  NDArray array = ArrayIn(args[0], "ensure_zero_offset");
  *rv = array->byte_offset == 0 ? array : array.CopyTo(array->device);
});

// (tensor, device kind, device number)
TVM_REGISTER_GLOBAL("vm.builtin.to_device").set_body([](TVMArgs args, TVMRetValue* rv) {
  NDArray array = ArrayIn(args[0], "to_device");
  DLDevice device{static_cast<DLDeviceType>(int(args[1])), int(args[2])};
  bool is_there = array->device.device_type == device.device_type && array->device.device_id == device.device_id;
  *rv = is_there ? array : array.CopyTo(device);
});

TVM_REGISTER_GLOBAL("vm.builtin.make_tuple").set_body([](TVMArgs args, TVMRetValue* rv) {
  auto tuple = make_object<ArrayNode>();
  tuple->items.resize(args.size());
  for (int i = 0; i < args.size(); ++i) tuple->items[i] = args[i];
  *rv = ObjectRef(ObjectPtr<Object>(tuple));
});

TVM_REGISTER_GLOBAL("vm.builtin.tuple_getitem").set_body([](TVMArgs args, TVMRetValue* rv) {
  ObjectPtr<ArrayNode> tuple = TupleIn(args[0], "tuple_getitem");
  int64_t i = args[1];
  if (i < 0 || i >= static_cast<int64_t>(tuple->items.size())) {
    throw Error(Cat("IndexError: index ", i, " is out of range: there are ", tuple->items.size(), " elements"));
  }
  *rv = tuple->items[i];
});

// Lets go of an element, whose memory may be used again.
TVM_REGISTER_GLOBAL("vm.builtin.tuple_reset_item").set_body([](TVMArgs args, TVMRetValue*) {
  ObjectPtr<ArrayNode> tuple = TupleIn(args[0], "tuple_reset_item");
  tuple->items.at(int64_t(args[1])) = nullptr;
});

TVM_REGISTER_GLOBAL("vm.builtin.read_if_cond").set_body([](TVMArgs args, TVMRetValue* rv) { *rv = ReadCondition(args[0]); });

TVM_REGISTER_GLOBAL("vm.builtin.tensor_to_shape").set_body([](TVMArgs args, TVMRetValue* rv) {
  NDArray array = ArrayIn(args[0], "tensor_to_shape");
  if (array->ndim != 1) ThrowValueError("tensor_to_shape needs a tensor of one axis, got ", array->ndim);
  if (array->device.device_type != kDLCPU) array = array.CopyTo(kHost);
  std::vector<int64_t> extents(array->shape[0]);
  for (size_t i = 0; i < extents.size(); ++i) extents[i] = IntegerAt(*array.tensor(), static_cast<int64_t>(i));
  *rv = ObjectRef(ShapeTuple(std::move(extents)));
});

// (closure, value, ...): a closure that has these values too
TVM_REGISTER_GLOBAL("vm.builtin.make_closure").set_body([](TVMArgs args, TVMRetValue* rv) {
  auto* made = args[0].type_code() == kTVMObjectHandle ? args[0].operator ObjectRef().as<ClosureObj>() : nullptr;
  if (made == nullptr) ThrowTypeError("make_closure needs a function of the executable, got ", KindName(args[0]));
  auto closure = make_object<ClosureObj>();
  closure->executable = made->executable;
  closure->function = made->function;
  closure->captured = made->captured;
  for (int i = 1; i < args.size(); ++i) {
    closure->captured.emplace_back();
    closure->captured.back() = args[i];
  }
  *rv = ObjectRef(ObjectPtr<Object>(closure));
});

// (machine, closure, argument, ...)
TVM_REGISTER_GLOBAL("vm.builtin.invoke_closure").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = Machine::Of(args[0])->InvokeClosure(args[1], args, 2);
});

// (function, argument, ..., shape): the function gets the shape's extents behind the arguments
TVM_REGISTER_GLOBAL("vm.builtin.call_tir_dyn").set_body([](TVMArgs args, TVMRetValue* rv) {
  if (args.size() < 2) ThrowTypeError("call_tir_dyn takes a function, arguments and a shape");
  PackedFunc func = args[0];
  ShapeTuple extents = args[args.size() - 1];
  CallArgs all;
  all.values.assign(args.values + 1, args.values + args.size() - 1);
  all.codes.assign(args.type_codes + 1, args.type_codes + args.size() - 1);
  for (int64_t extent : extents) {
    TVMValue value;
    value.v_int64 = extent;
    all.values.push_back(value);
    all.codes.push_back(kTVMArgInt);
  }
  func.CallPacked(all.View(), rv);
});

// (effect, name of a global function, line, argument, ...): the function is called with the line and the arguments
TVM_REGISTER_GLOBAL("vm.builtin.invoke_debug_func").set_body([](TVMArgs args, TVMRetValue* rv) {
  if (args.size() < 3) ThrowTypeError("invoke_debug_func takes an effect, a name, a line and arguments");
  std::string name = args[1];
  PackedFunc func = Registry::Find(name);
  if (!func.defined()) ThrowValueError("debug_func: there is no global function '", name, "'");
  TVMRetValue ignored;
  func.CallPacked(TVMArgs(args.values + 2, args.type_codes + 2, args.size() - 2), &ignored);
  *rv = args[0];
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
