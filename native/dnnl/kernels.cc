// Single operators for te.extern: what tvm.contrib.dnnl calls.
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include "program.h"

namespace tvm {
namespace dnnl_runtime {
namespace {

using namespace runtime;

Dims Shape(const char* who, const DLTensor& tensor, int rank) {
  if (tensor.ndim != rank || !TypeMatch(tensor.dtype, kDLFloat, 32) || !IsContiguous(tensor)) {
    ThrowValueError(who, " takes contiguous float32 tensors with ", rank, " axes, got ", DLDataType2String(tensor.dtype), " of shape ",
                    ShapeText(tensor.shape, tensor.ndim));
  }
  return Dims(tensor.shape, tensor.shape + rank);
}

void* DataOf(const DLTensor& tensor) { return static_cast<char*>(tensor.data) + tensor.byte_offset; }

// (a, b, c, transa, transb)
void Matmul(DLTensor* a, DLTensor* b, DLTensor* c, bool transa, bool transb) {
  constexpr const char* kWho = "tvm.contrib.dnnl.matmul";
  if (a == nullptr || b == nullptr || c == nullptr) ThrowTypeError(kWho, " takes three tensors, got None");
  Program program;
  auto operand = [&](const DLTensor& tensor, bool is_transposed) {
    Value value = program.Constant(Shape(kWho, tensor, 2), DataOf(tensor));
    return is_transposed ? program.Permuted(value, {1, 0}) : value;
  };
  Value left = operand(*a, transa), right = operand(*b, transb), result = operand(*c, false);
  dnnl::matmul::desc desc(left.desc(), right.desc(), result.desc());
  dnnl::matmul::primitive_desc chosen(desc, program.engine());
  program.Add(dnnl::matmul(chosen), {{DNNL_ARG_SRC, left.memory}, {DNNL_ARG_WEIGHTS, right.memory}, {DNNL_ARG_DST, result.memory}});
  program.Run();
}

// (source, weights, result, top, left, bottom, right, stride_h, stride_w, dilation_h, dilation_w, groups, channel_last)
void Convolution(TVMArgs args, TVMRetValue*) {
  constexpr const char* kWho = "tvm.contrib.dnnl.conv2d";
  constexpr int kFirst = 3;
  Program program;
  bool channel_last = args[12];
  int64_t groups = args[11];
  auto tensor = [&](int number, const std::vector<int>& places) {
    DLTensor* given = args[number];
    if (given == nullptr) ThrowTypeError(kWho, " takes three tensors, got None");
    Value value = program.Constant(Shape(kWho, *given, 4), DataOf(*given));
    return channel_last ? program.Permuted(value, places) : value;
  };
  Value source = tensor(0, {0, 2, 3, 1}), weights = tensor(1, {2, 3, 1, 0}), result = tensor(2, {0, 2, 3, 1});
  if (groups > 1) {
    Dims dims = weights.dims();
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    weights = program.View(weights, weights.desc().reshape(dims));
  }
  auto number = [&](int i) -> int64_t { return args[kFirst + i]; };
  dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, source.desc(), AnyDesc(weights.dims()),
                                       result.desc(), {number(4), number(5)}, {number(6) - 1, number(7) - 1}, {number(0), number(1)},
                                       {number(2), number(3)});
  dnnl::convolution_forward::primitive_desc chosen(desc, program.engine());
  program.Add(dnnl::convolution_forward(chosen), {{DNNL_ARG_SRC, source.memory},
                                                  {DNNL_ARG_WEIGHTS, program.In(weights, chosen.weights_desc()).memory},
                                                  {DNNL_ARG_DST, result.memory}});
  program.Run();
}

TVM_REGISTER_GLOBAL("dnnl.matmul").set_body_typed(Matmul);
TVM_REGISTER_GLOBAL("dnnl.conv2d").set_body(Convolution);

}  // namespace
}  // namespace dnnl_runtime
}  // namespace tvm
