// What programs say while they run: print and assert, and shapes as tensors.
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cstdio>

#include "../container.h"
#include "builtin.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

std::string NumberText(const DLTensor& tensor, int64_t i) {
  const char* at = DataOf<char>(tensor) + i * ((tensor.dtype.bits + 7) / 8);
  bool is_signed = tensor.dtype.code == kDLInt;
  if (tensor.dtype.code == kDLFloat) {
    if (tensor.dtype.bits == 32) return Cat(*reinterpret_cast<const float*>(at));
    if (tensor.dtype.bits == 64) return Cat(*reinterpret_cast<const double*>(at));
    return "?";
  }
  switch (tensor.dtype.bits) {
    case 1: return *at ? "True" : "False";
    case 8: return is_signed ? Cat(static_cast<int>(*reinterpret_cast<const int8_t*>(at))) : Cat(static_cast<int>(*reinterpret_cast<const uint8_t*>(at)));
    case 16: return is_signed ? Cat(*reinterpret_cast<const int16_t*>(at)) : Cat(*reinterpret_cast<const uint16_t*>(at));
    case 32: return is_signed ? Cat(*reinterpret_cast<const int32_t*>(at)) : Cat(*reinterpret_cast<const uint32_t*>(at));
    case 64: return is_signed ? Cat(*reinterpret_cast<const int64_t*>(at)) : Cat(*reinterpret_cast<const uint64_t*>(at));
    default: return "?";
  }
}

// "[[1 2]\n [3 4]]", as numpy shows arrays
std::string TensorText(const DLTensor& tensor, int axis, int64_t first) {
  if (axis == tensor.ndim) return NumberText(tensor, first);
  int64_t step = 1;
  for (int i = axis + 1; i < tensor.ndim; ++i) step *= tensor.shape[i];
  std::string separator = axis + 1 == tensor.ndim ? " " : "\n" + std::string(axis + 1, ' ');
  std::string text = "[";
  for (int64_t i = 0; i < tensor.shape[axis]; ++i) text += (i ? separator : "") + TensorText(tensor, axis + 1, first + i * step);
  return text + "]";
}

std::string ValueText(const TVMArgValue& value) {
  switch (value.type_code()) {
    case kTVMArgInt: return Cat(int64_t(value));
    case kTVMArgBool: return int64_t(value) ? "True" : "False";
    case kTVMArgFloat: return Cat(double(value));
    case kTVMNullptr: return "None";
    case kTVMStr: return value;
    case kTVMDataType: return DLDataType2String(value);
    case kTVMDLTensorHandle:
    case kTVMNDArrayHandle: {
      const DLTensor* tensor = value.operator DLTensor*();
      if (tensor->device.device_type == kDLCPU && IsContiguous(*tensor)) return TensorText(*tensor, 0, 0);
      NDArray copy = NDArray::Empty(std::vector<int64_t>(tensor->shape, tensor->shape + tensor->ndim), tensor->dtype, DLDevice{kDLCPU, 0});
      copy.CopyFrom(tensor);
      return TensorText(*copy.tensor(), 0, 0);
    }
    default: break;
  }
  if (value.type_code() != kTVMObjectHandle) return ArgTypeCode2Str(value.type_code());
  if (IsShape(value)) return Cat(value.operator ShapeTuple());
  ObjectRef object = AsNativeContainer(value, true);
  auto* tuple = object.as<ArrayNode>();
  if (tuple == nullptr) return ForeignTypeName(object.get());
  std::string text;
  for (const TVMRetValue& item : tuple->items) text += (text.empty() ? "" : ", ") + ValueText(item);
  return "(" + text + (tuple->items.size() == 1 ? ",)" : ")");
}

// The format with {} replaced by the values in turn; without one, the values with a separator between them.
std::string Formatted(const std::string& format, const TVMArgs& args, int first, const char* separator) {
  std::string text;
  int next = first;
  if (format.empty()) {
    for (; next < args.size(); ++next) text += (next > first ? separator : "") + ValueText(args[next]);
    return text;
  }
  for (size_t i = 0; i < format.size(); ++i) {
    bool is_pair = i + 1 < format.size() && format[i] == format[i + 1];
    if (format.compare(i, 2, "{}") == 0) {
      if (next >= args.size()) throw Error(Cat("IndexError: the format '", format, "' has more places than the ", args.size() - first, " values"));
      text += ValueText(args[next++]);
      ++i;
    } else {
      text += format[i];
      if (is_pair && (format[i] == '{' || format[i] == '}')) ++i;
    }
  }
  return text;
}

bool Holds(const TVMArgValue& condition) {
  if (condition.type_code() == kTVMArgInt || condition.type_code() == kTVMArgBool) return condition.value().v_int64 != 0;
  DLTensor* tensor = condition;
  bool is_bool = tensor != nullptr && tensor->ndim == 0 && (tensor->dtype.bits == 1 || tensor->dtype.code == kDLBool);
  if (!is_bool) ThrowValueError("assert_op needs a truth value or a scalar tensor of bool, got ", KindName(condition));
  return ValueText(condition) == "True";
}

// The global function "runtime.PrintLine" decides where the text goes, where a language has one.
void PrintLine(const std::string& text) {
  PackedFunc print = Registry::Find("runtime.PrintLine");
  if (print.defined()) {
    print(text);
  } else {
    std::printf("%s\n", text.c_str());
  }
}

}  // namespace

// (format, value, ...)
TVM_REGISTER_GLOBAL("relax.run.print").set_body([](TVMArgs args, TVMRetValue*) {
  PrintLine(Formatted(args[0], args, 1, " "));
});

// (line, value, ...)
TVM_REGISTER_GLOBAL("vm.builtin.debug_print").set_body([](TVMArgs args, TVMRetValue*) {
  PrintLine(args[0].operator std::string() + ": " + Formatted("", args, 1, " "));
});

// (condition, format, value, ...)
TVM_REGISTER_GLOBAL("relax.run.assert_op").set_body([](TVMArgs args, TVMRetValue*) {
  if (Holds(args[0])) return;
  std::string format = args[1];
  std::string text = Formatted(format, args, 2, ", ");
  if (format.empty()) text = text.empty() ? "Assertion Failed" : "Assertion Failed: " + text;
  throw Error("AssertionError: " + text);
});

TVM_REGISTER_GLOBAL("relax.run.shape_to_tensor").set_body([](TVMArgs args, TVMRetValue* rv) {
  ShapeTuple shape = args[0];
  NDArray tensor = NDArray::Empty({static_cast<int64_t>(shape.size())}, DLDataType{kDLInt, 64, 1}, DLDevice{kDLCPU, 0});
  std::copy(shape.begin(), shape.end(), DataOf<int64_t>(*tensor.tensor()));
  *rv = tensor;
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
