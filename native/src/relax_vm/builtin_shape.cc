// Shapes that are known at run time: a heap of integers, and checks of what arguments are.
#include <tvm/runtime/registry.h>

#include "builtin.h"
#include "machine.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

// What is done with an axis, and with a number.
enum MatchCode : int64_t { kAssertEqualToImmediate = 0, kStoreToHeap = 1, kNoOp = 2, kAssertEqualToLoad = 3 };
enum MakeCode : int64_t { kUseImmediate = 0, kLoadShape = 1 };

class Heap {
 public:
  explicit Heap(const TVMArgValue& value) {
    DLTensor* tensor = value;
    if (tensor == nullptr) return;
    HostTensor(value, "the heap of shapes");
    size_ = tensor->ndim == 1 ? tensor->shape[0] : 0;
    data_ = DataOf<int64_t>(*tensor);
  }
  int64_t& At(int64_t index) const {
    if (index < 0 || index >= size_) ThrowValueError("the heap of shapes has ", size_, " places, got index ", index);
    return data_[index];
  }

 private:
  int64_t* data_{nullptr};
  int64_t size_{0};
};

std::string Context(const TVMArgs& args, int index) {
  if (index < args.size() && args[index].is_str()) {
    std::string text = args[index];
    if (!text.empty()) return text + " ";
  }
  return "";
}

template <class... Parts>
[[noreturn]] void Mismatch(const Parts&... parts) {
  throw Error(Cat("RuntimeError: match_cast: ", parts...));
}

void MatchNumber(int64_t found, int64_t code, int64_t operand, const Heap& heap, const std::string& what) {
  switch (code) {
    case kAssertEqualToImmediate:
      if (found != operand) Mismatch(what, " is ", found, ", expected ", operand);
      return;
    case kStoreToHeap: heap.At(operand) = found; return;
    case kNoOp: return;
    case kAssertEqualToLoad:
      if (found != heap.At(operand)) Mismatch(what, " is ", found, ", expected ", heap.At(operand), " as elsewhere");
      return;
    default: ThrowValueError("match_shape: unknown code ", code);
  }
}

std::vector<int64_t> ExtentsOf(const TVMArgValue& value) {
  if (value.type_code() == kTVMNDArrayHandle || value.type_code() == kTVMDLTensorHandle) {
    DLTensor* tensor = value;
    return std::vector<int64_t>(tensor->shape, tensor->shape + tensor->ndim);
  }
  ShapeTuple shape = value;
  return std::vector<int64_t>(shape.begin(), shape.end());
}

int64_t ReadNumber(int64_t code, int64_t operand, const Heap& heap) {
  if (code == kUseImmediate) return operand;
  if (code == kLoadShape) return heap.At(operand);
  ThrowValueError("make_shape: unknown code ", code);
}

}  // namespace

TVM_REGISTER_GLOBAL("vm.builtin.shape_of").set_body([](TVMArgs args, TVMRetValue* rv) {
  bool is_tensor = args[0].type_code() == kTVMNDArrayHandle || args[0].type_code() == kTVMDLTensorHandle;
  if (!is_tensor) ThrowTypeError("shape_of needs a tensor, got ", KindName(args[0]));
  *rv = ObjectRef(ShapeTuple(ExtentsOf(args[0])));
});

// (machine, places)
TVM_REGISTER_GLOBAL("vm.builtin.alloc_shape_heap").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = NDArray::Empty({int64_t(args[1])}, DLDataType{kDLInt, 64, 1}, DLDevice{kDLCPU, 0});
});

// (tensor or shape, heap, axes, code, operand, ..., context)
TVM_REGISTER_GLOBAL("vm.builtin.match_shape").set_body([](TVMArgs args, TVMRetValue*) {
  std::vector<int64_t> extents = ExtentsOf(args[0]);
  Heap heap(args[1]);
  int64_t count = args[2];
  if (count < 0 || args.size() < 3 + 2 * count) ThrowTypeError("match_shape takes a code and an operand for each of ", count, " axes");
  std::string context = Context(args, static_cast<int>(3 + 2 * count));
  if (count != static_cast<int64_t>(extents.size())) {
    Mismatch(context, "the shape has ", extents.size(), " axes, expected ", count);
  }
  for (int64_t i = 0; i < count; ++i) {
    int at = static_cast<int>(3 + 2 * i);
    MatchNumber(extents[i], args[at], args[at + 1], heap, Cat(context, "axis ", i, " of the shape"));
  }
});

// (number, heap, code, operand, context)
TVM_REGISTER_GLOBAL("vm.builtin.match_prim_value").set_body([](TVMArgs args, TVMRetValue*) {
  MatchNumber(args[0], args[2], args[3], Heap(args[1]), Context(args, 4) + "the number");
});

// (heap, axes, code, operand, ...)
TVM_REGISTER_GLOBAL("vm.builtin.make_shape").set_body([](TVMArgs args, TVMRetValue* rv) {
  Heap heap(args[0]);
  int64_t count = args[1];
  if (count < 0 || args.size() < 2 + 2 * count) ThrowTypeError("make_shape takes a code and an operand for each of ", count, " axes");
  std::vector<int64_t> extents(count);
  for (int64_t i = 0; i < count; ++i) extents[i] = ReadNumber(args[static_cast<int>(2 + 2 * i)], args[static_cast<int>(3 + 2 * i)], heap);
  *rv = ObjectRef(ShapeTuple(std::move(extents)));
});

// (heap, code, operand)
TVM_REGISTER_GLOBAL("vm.builtin.make_prim_value").set_body([](TVMArgs args, TVMRetValue* rv) {
  *rv = ReadNumber(args[1], args[2], Heap(args[0]));
});

// (value, axes or -1, dtype, context) or (value, axes or -1, context)
TVM_REGISTER_GLOBAL("vm.builtin.check_tensor_info").set_body([](TVMArgs args, TVMRetValue*) {
  bool has_dtype = args.size() > 3;
  std::string context = Context(args, has_dtype ? 3 : 2);
  bool is_tensor = args[0].type_code() == kTVMNDArrayHandle || args[0].type_code() == kTVMDLTensorHandle;
  if (!is_tensor) ThrowTypeError("in match_cast: ", context, "expected a Tensor, got ", KindName(args[0]));
  DLTensor* tensor = args[0];
  int64_t ndim = args[1];
  if (ndim != -1 && tensor->ndim != ndim) {
    ThrowValueError("in match_cast: ", context, "expected a Tensor with ndim ", ndim, ", got ", tensor->ndim);
  }
  if (!has_dtype || (args[2].is_str() && args[2].operator std::string().empty())) return;
  DLDataType dtype = args[2];
  if (dtype.bits != 0 && !TypeEqual(dtype, tensor->dtype)) {
    ThrowValueError("in match_cast: ", context, "expected a Tensor with dtype ", DLDataType2String(dtype), ", got ", DLDataType2String(tensor->dtype));
  }
});

// (value, axes or -1, context)
TVM_REGISTER_GLOBAL("vm.builtin.check_shape_info").set_body([](TVMArgs args, TVMRetValue*) {
  std::string context = Context(args, 2);
  if (!IsShape(args[0])) ThrowTypeError("in match_cast: ", context, "expected a Shape, got ", KindName(args[0]));
  int64_t ndim = args[1];
  int64_t found = static_cast<int64_t>(args[0].operator ShapeTuple().size());
  if (ndim != -1 && found != ndim) ThrowValueError("in match_cast: ", context, "expected a Shape with ndim ", ndim, ", got ", found);
});

// (value, dtype, context)
TVM_REGISTER_GLOBAL("vm.builtin.check_prim_value_info").set_body([](TVMArgs args, TVMRetValue*) {
  std::string context = Context(args, 2);
  DLDataType dtype = args[1];
  int code = args[0].type_code();
  bool is_integer = code == kTVMArgInt || code == kTVMArgBool;
  bool fits = dtype.code == kDLFloat ? code == kTVMArgFloat : dtype.code == kDLOpaqueHandle || is_integer;
  if (!fits) ThrowTypeError("in match_cast: ", context, "expected a number of type ", DLDataType2String(dtype), ", got ", KindName(args[0]));
});

// (value, elements, context)
TVM_REGISTER_GLOBAL("vm.builtin.check_tuple_info").set_body([](TVMArgs args, TVMRetValue*) {
  std::string context = Context(args, 2);
  ObjectPtr<ArrayNode> tuple = TupleIn(args[0], "in match_cast: " + context + "what follows");
  int64_t count = args[1];
  if (static_cast<int64_t>(tuple->items.size()) != count) {
    ThrowValueError("in match_cast: ", context, "expected a Tuple with ", count, " elements, got ", tuple->items.size(), " elements");
  }
});

// (value, context)
TVM_REGISTER_GLOBAL("vm.builtin.check_func_info").set_body([](TVMArgs args, TVMRetValue*) {
  bool is_closure = args[0].type_code() == kTVMObjectHandle && args[0].operator ObjectRef().as<runtime::ClosureObj>() != nullptr;
  if (args[0].type_code() == kTVMPackedFuncHandle || is_closure) return;
  ThrowTypeError("in match_cast: ", Context(args, 1), "expected a Function, got ", KindName(args[0]));
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
