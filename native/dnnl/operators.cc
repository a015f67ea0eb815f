#include "operators.h"

#include <tvm/runtime/error.h>

#include <map>
#include <numeric>
#include <set>
#include <sstream>

namespace tvm {
namespace dnnl_runtime {
namespace {

using dnnl::algorithm;
using dnnl::primitive_attr;
using dnnl::prop_kind;
using runtime::ThrowValueError;

constexpr auto kInference = prop_kind::forward_inference;

std::vector<std::string> Split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, mark);) parts.push_back(part);
  return parts;
}

struct Activation {
  algorithm kind;
  float alpha, beta;
};

// "nn.relu", "clip:0:6".
Activation ActivationOf(const std::string& text) {
  static const auto* table = new std::map<std::string, algorithm>{
      {"nn.relu", algorithm::eltwise_relu},     {"nn.leaky_relu", algorithm::eltwise_relu},  {"tanh", algorithm::eltwise_tanh},
      {"sigmoid", algorithm::eltwise_logistic}, {"exp", algorithm::eltwise_exp},             {"log", algorithm::eltwise_log},
      {"sqrt", algorithm::eltwise_sqrt},        {"abs", algorithm::eltwise_abs},             {"round", algorithm::eltwise_round},
      {"clip", algorithm::eltwise_clip},        {"gelu", algorithm::eltwise_gelu_erf},       {"swish", algorithm::eltwise_swish},
      {"mish", algorithm::eltwise_mish},        {"linear", algorithm::eltwise_linear},
  };
  std::vector<std::string> parts = Split(text, ':');
  auto found = table->find(parts.at(0));
  if (found == table->end()) ThrowValueError("oneDNN has no activation '", text, "'");
  float alpha = parts.size() > 1 ? std::stof(parts[1]) : found->first == "swish" ? 1.0f : 0.0f;
  return {found->second, alpha, parts.size() > 2 ? std::stof(parts[2]) : 0.0f};
}

// What follows the root of a composite function.
struct Epilogue {
  int bias{-1};
  int sum{-1};
  float sum_factor{1.0f};
  std::vector<std::string> activations;  // in order, "sum" among them
  std::vector<float> scales;             // of sums of integers: one for all or one a channel
  int source_zero{0};

  explicit Epilogue(const Operation& operation) {
    if (operation.node->HasAttr("scales")) {
      for (const std::string& text : operation.node->GetAttr<std::vector<std::string>>("scales")) scales.push_back(std::stof(text));
      source_zero = static_cast<int>(operation.Numbers("source_zero").at(0));
    }
    if (!operation.node->HasAttr("post_ops")) return;
    for (const std::string& text : operation.node->GetAttr<std::vector<std::string>>("post_ops")) {
      std::vector<std::string> parts = Split(text, ':');
      if (parts.at(0) == "bias") {
        bias = std::stoi(parts.at(1));
      } else if (parts[0] == "sum") {
        sum = std::stoi(parts.at(1));
        if (parts.size() > 2) sum_factor = std::stof(parts[2]);
        activations.push_back("sum");
      } else {
        activations.push_back(text);
      }
    }
  }
  primitive_attr Attributes() const {
    dnnl::post_ops after;
    for (const std::string& text : activations) {
      if (text == "sum") {
        after.append_sum(sum_factor);
      } else {
        Activation activation = ActivationOf(text);
        after.append_eltwise(1.0f, activation.kind, activation.alpha, activation.beta);
      }
    }
    primitive_attr attributes;
    attributes.set_post_ops(after);
    constexpr int kEachChannel = 1 << 1;
    if (!scales.empty()) attributes.set_output_scales(scales.size() == 1 ? 0 : kEachChannel, scales);
    if (source_zero != 0) attributes.set_zero_points(DNNL_ARG_SRC, 0, {source_zero});
    return attributes;
  }
};

Desc BiasDesc(const Operation& operation, const Epilogue& epilogue, int64_t channels) {
  return epilogue.bias < 0 ? Desc() : PlainDesc({channels}, operation.inputs.at(epilogue.bias).type());
}

// Where the result goes: over the summand, if there is one.
Value Target(const Operation& operation, const Epilogue& epilogue, const std::function<Value(const Value&)>& arranged, const Desc& desc) {
  Program* program = operation.program;
  if (epilogue.sum < 0) return program->Computed(desc);
  Value summand = arranged(operation.inputs.at(epilogue.sum));
  bool is_free = summand.kind == Value::Kind::kComputed && operation.is_last_use.at(epilogue.sum);
  if (is_free && summand.desc() == desc) return summand;
  Value result = program->Computed(desc);
  program->Copy(summand, result);
  return result;
}

// The axes of a layout in oneDNN's order: batch, channels, height, width.
std::vector<int> Places(const std::string& layout, const std::string& order, size_t rank) {
  std::vector<int> places;
  bool is_complete = layout.size() == rank && std::set<char>(layout.begin(), layout.end()).size() == rank && order.size() == rank;
  if (!is_complete || rank < 3) ThrowValueError("the layout ", layout, " does not fit a tensor with ", rank, " axes");
  for (char axis : layout) {
    size_t place = order.find(axis);
    if (place == std::string::npos) ThrowValueError("oneDNN takes layouts of the axes ", order, ", got ", layout);
    places.push_back(static_cast<int>(place));
  }
  return places;
}

std::vector<int> Inverse(const std::vector<int>& places) {
  std::vector<int> inverse(places.size());
  for (size_t i = 0; i < places.size(); ++i) inverse[places[i]] = static_cast<int>(i);
  return inverse;
}

// "NHWC" -> "NCHW", "HWIO" -> "OIHW".
std::string Order(const std::string& layout, const std::string& first) {
  std::string order = first;
  for (char axis : std::string("DHW")) {
    if (layout.find(axis) != std::string::npos) order += axis;
  }
  return order;
}

Dims Half(const Dims& padding, bool second) {
  size_t half = padding.size() / 2;
  return second ? Dims(padding.begin() + half, padding.end()) : Dims(padding.begin(), padding.begin() + half);
}

// (I, O / groups, ..) or (O, I / groups, ..) with an axis for the groups, output channels before input channels.
Value Weights(const Operation& operation, bool is_transposed) {
  Program* program = operation.program;
  const Value& given = operation.inputs.at(1);
  std::string layout = operation.Text("kernel_layout"), first = is_transposed ? "IO" : "OI";
  Value weights = program->Permuted(given, Places(layout, Order(layout, first), given.dims().size()));
  int64_t groups = operation.Positive("groups").at(0);
  Dims dims = weights.dims();
  if (groups > 1) {
    dims[0] /= groups;
    dims.insert(dims.begin(), groups);
    weights = program->View(weights, weights.desc().reshape(dims));
  }
  if (!is_transposed) return weights;
  std::vector<int> places(dims.size());
  std::iota(places.begin(), places.end(), 0);
  std::swap(places.at(groups > 1), places.at((groups > 1) + 1));
  return program->Permuted(weights, places);
}

template <typename Forward>
Value ConvolutionBy(const Operation& operation, algorithm kind, bool is_transposed) {
  Program* program = operation.program;
  std::string layout = operation.Text("data_layout");
  size_t rank = operation.ResultDims().size();
  std::vector<int> places = Places(layout, Order(layout, "NC"), rank), back = Inverse(places);
  auto arranged = [&](const Value& value) { return program->Permuted(value, places); };
  Value source = arranged(operation.inputs.at(0));
  Value weights = Weights(operation, is_transposed);
  Dims dilation = operation.Positive("dilation");
  for (int64_t& step : dilation) --step;  // oneDNN counts what lies between
  Dims before = Half(operation.Numbers("padding"), false), after = Half(operation.Numbers("padding"), true);
  if (is_transposed) {
    Dims more = operation.Numbers("output_padding");
    for (size_t i = 0; i < after.size(); ++i) after[i] -= more.at(i);
  }
  Epilogue epilogue(operation);
  bool is_plain = operation.node->HasAttr("plain_layouts");
  Dims result = operation.node->GetOpShape()[0];
  Dims ordered(result.size());
  for (size_t i = 0; i < result.size(); ++i) ordered[places[i]] = result[i];
  Desc source_desc = is_plain ? source.desc() : AnyDesc(source.dims(), source.type());
  Type type = operation.ResultType();
  Desc result_desc = is_plain ? PlainDesc(result, type).permute_axes(places) : AnyDesc(ordered, type);
  Desc bias_desc = BiasDesc(operation, epilogue, ordered[1]);
  typename Forward::desc desc(kInference, kind, source_desc, AnyDesc(weights.dims(), weights.type()), bias_desc, result_desc,
                              operation.Positive("strides"), dilation, before, after);
  typename Forward::primitive_desc chosen(desc, epilogue.Attributes(), program->engine());
  Value target = Target(operation, epilogue, arranged, chosen.dst_desc());
  Program::Arguments arguments{{DNNL_ARG_SRC, program->In(source, chosen.src_desc()).memory},
                               {DNNL_ARG_WEIGHTS, program->In(weights, chosen.weights_desc()).memory},
                               {DNNL_ARG_DST, target.memory}};
  if (epilogue.bias >= 0) {
    arguments[DNNL_ARG_BIAS] = program->Reshaped(operation.inputs.at(epilogue.bias), {ordered[1]}).memory;
  }
  program->Add(Forward(chosen), arguments);
  return program->Permuted(target, back);
}

Value Convolution(const Operation& operation) {
  return ConvolutionBy<dnnl::convolution_forward>(operation, algorithm::convolution_direct, false);
}

Value TransposedConvolution(const Operation& operation) {
  return ConvolutionBy<dnnl::deconvolution_forward>(operation, algorithm::deconvolution_direct, true);
}

Value Dense(const Operation& operation) {
  Program* program = operation.program;
  Dims result = operation.ResultDims();
  int64_t units = result.back();
  int64_t depth = operation.inputs.at(0).dims().back();
  int64_t rows = std::accumulate(result.begin(), result.end() - 1, int64_t{1}, std::multiplies<int64_t>());
  auto arranged = [&](const Value& value) { return program->Reshaped(value, {rows, units}); };
  Value source = program->Reshaped(operation.inputs[0], {rows, depth});
  const Value& weights = operation.inputs.at(1);
  Epilogue epilogue(operation);
  Type type = operation.ResultType();
  dnnl::inner_product_forward::desc desc(kInference, source.desc(), AnyDesc(weights.dims(), weights.type()),
                                         BiasDesc(operation, epilogue, units), PlainDesc({rows, units}, type));
  dnnl::inner_product_forward::primitive_desc chosen(desc, epilogue.Attributes(), program->engine());
  Value target = Target(operation, epilogue, arranged, chosen.dst_desc());
  Program::Arguments arguments{{DNNL_ARG_SRC, source.memory},
                               {DNNL_ARG_WEIGHTS, program->In(weights, chosen.weights_desc()).memory},
                               {DNNL_ARG_DST, target.memory}};
  if (epilogue.bias >= 0) {
    arguments[DNNL_ARG_BIAS] = program->Reshaped(operation.inputs.at(epilogue.bias), {units}).memory;
  }
  program->Add(dnnl::inner_product_forward(chosen), arguments);
  return program->View(target, PlainDesc(result, type));
}

Value BatchMatmul(const Operation& operation) {
  Program* program = operation.program;
  auto operand = [&](int number, const char* key) {
    Value plain = program->Plain(operation.inputs.at(number));
    return operation.Numbers(key).at(0) ? program->Permuted(plain, {0, 2, 1}) : plain;
  };
  Value a = operand(0, "transpose_a"), b = operand(1, "transpose_b");
  Value result = program->Computed(PlainDesc(operation.ResultDims(), operation.ResultType()));
  dnnl::matmul::desc desc(a.desc(), b.desc(), result.desc());
  dnnl::matmul::primitive_desc chosen(desc, Epilogue(operation).Attributes(), program->engine());
  program->Add(dnnl::matmul(chosen), {{DNNL_ARG_SRC, a.memory}, {DNNL_ARG_WEIGHTS, b.memory}, {DNNL_ARG_DST, result.memory}});
  return result;
}

Value Pool(const Operation& operation, algorithm kind, bool is_global) {
  Program* program = operation.program;
  std::string layout = operation.Text("layout");
  std::vector<int> places = Places(layout, Order(layout, "NC"), operation.ResultDims().size());
  Value source = program->Permuted(operation.inputs.at(0), places);
  Dims from = source.dims(), to(from.size()), shape = operation.ResultDims();
  for (size_t i = 0; i < to.size(); ++i) to.at(places[i]) = shape.at(i);
  size_t rank = from.size() - 2;
  Dims window = is_global ? Dims(from.begin() + 2, from.end()) : operation.Positive("pool_size");
  Dims strides = is_global ? Dims(rank, 1) : operation.Positive("strides");
  Dims before = is_global ? Dims(rank, 0) : Half(operation.Numbers("padding"), false), after(rank);
  // as much as the result asks for: rounding up reads beyond the padding
  for (size_t i = 0; i < rank; ++i) after[i] = (to[i + 2] - 1) * strides.at(i) + window.at(i) - from[i + 2] - before.at(i);
  dnnl::pooling_forward::desc desc(kInference, kind, source.desc(), AnyDesc(to, source.type()), strides, window, before, after);
  dnnl::pooling_forward::primitive_desc chosen(desc, program->engine());
  Value result = program->Computed(chosen.dst_desc());
  program->Add(dnnl::pooling_forward(chosen), {{DNNL_ARG_SRC, source.memory}, {DNNL_ARG_DST, result.memory}});
  return program->Permuted(result, Inverse(places));
}

Value Pointwise(const Operation& operation, const std::string& text) {
  Program* program = operation.program;
  const Value& source = operation.inputs.at(0);
  Activation activation = ActivationOf(text);
  dnnl::eltwise_forward::desc desc(kInference, activation.kind, source.desc(), activation.alpha, activation.beta);
  dnnl::eltwise_forward::primitive_desc chosen(desc, program->engine());
  Value result = program->Computed(chosen.dst_desc());
  program->Add(dnnl::eltwise_forward(chosen), {{DNNL_ARG_SRC, source.memory}, {DNNL_ARG_DST, result.memory}});
  return result;
}

Value Binary(const Operation& operation, algorithm kind) {
  Program* program = operation.program;
  const Value& a = operation.inputs.at(0);
  Value b = operation.inputs.at(1);
  Dims dims = b.dims();
  if (dims.size() < a.dims().size()) {
    dims.insert(dims.begin(), a.dims().size() - dims.size(), 1);
    b = program->Reshaped(b, dims);
  }
  dnnl::binary::desc desc(kind, a.desc(), b.desc(), a.desc());
  dnnl::binary::primitive_desc chosen(desc, Epilogue(operation).Attributes(), program->engine());
  Value result = program->Computed(chosen.dst_desc());
  program->Add(dnnl::binary(chosen), {{DNNL_ARG_SRC_0, a.memory}, {DNNL_ARG_SRC_1, b.memory}, {DNNL_ARG_DST, result.memory}});
  return result;
}

int Axis(const Operation& operation) {
  int64_t rank = operation.ResultDims().size(), axis = operation.Numbers("axis").at(0);
  if (axis < -rank || axis >= rank) ThrowValueError("the axis ", axis, " is not among ", rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Value Softmax(const Operation& operation) {
  Program* program = operation.program;
  const Value& source = operation.inputs.at(0);
  dnnl::softmax_forward::desc desc(kInference, source.desc(), Axis(operation));
  dnnl::softmax_forward::primitive_desc chosen(desc, program->engine());
  Value result = program->Computed(chosen.dst_desc());
  program->Add(dnnl::softmax_forward(chosen), {{DNNL_ARG_SRC, source.memory}, {DNNL_ARG_DST, result.memory}});
  return result;
}

Value Concatenate(const Operation& operation) {
  Program* program = operation.program;
  std::vector<Desc> descs;
  Program::Arguments arguments;
  for (size_t i = 0; i < operation.inputs.size(); ++i) {
    descs.push_back(operation.inputs[i].desc());
    arguments[DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i)] = operation.inputs[i].memory;
  }
  dnnl::concat::primitive_desc chosen(Axis(operation), descs, program->engine());
  Value result = program->Computed(chosen.dst_desc());
  arguments[DNNL_ARG_DST] = result.memory;
  program->Add(dnnl::concat(chosen), arguments);
  return result;
}

Value LayerNorm(const Operation& operation) {
  Program* program = operation.program;
  Value source = program->Plain(operation.inputs.at(0));
  int64_t width = source.dims().back();
  auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
  float epsilon = operation.node->GetAttr<float>("epsilon");
  dnnl::layer_normalization_forward::desc desc(kInference, source.desc(), epsilon, flags);
  dnnl::layer_normalization_forward::primitive_desc chosen(desc, program->engine());
  Value result = program->Computed(chosen.dst_desc());
  program->Add(dnnl::layer_normalization_forward(chosen), {{DNNL_ARG_SRC, source.memory},
                                                           {DNNL_ARG_SCALE, program->Reshaped(operation.inputs.at(1), {width}).memory},
                                                           {DNNL_ARG_SHIFT, program->Reshaped(operation.inputs.at(2), {width}).memory},
                                                           {DNNL_ARG_DST, result.memory}});
  return result;
}

using Build = std::function<Value(const Operation&)>;

const std::map<std::string, Build>& Builders() {
  auto pool = [](algorithm kind, bool is_global) {
    return [kind, is_global](const Operation& operation) { return Pool(operation, kind, is_global); };
  };
  auto average = [](const Operation& operation) {
    bool counts_padding = operation.Numbers("count_include_pad").at(0) != 0;
    return Pool(operation, counts_padding ? algorithm::pooling_avg_include_padding : algorithm::pooling_avg_exclude_padding, false);
  };
  auto binary = [](algorithm kind) { return [kind](const Operation& operation) { return Binary(operation, kind); }; };
  static const auto* builders = new std::map<std::string, Build>{
      {"nn.conv1d", Convolution},
      {"nn.conv2d", Convolution},
      {"nn.conv3d", Convolution},
      {"nn.conv2d_transpose", TransposedConvolution},
      {"nn.conv3d_transpose", TransposedConvolution},
      {"nn.dense", Dense},
      {"qnn.conv2d", Convolution},
      {"qnn.dense", Dense},
      {"nn.batch_matmul", BatchMatmul},
      {"nn.max_pool2d", pool(algorithm::pooling_max, false)},
      {"nn.max_pool3d", pool(algorithm::pooling_max, false)},
      {"nn.avg_pool2d", average},
      {"nn.avg_pool3d", average},
      {"nn.global_max_pool2d", pool(algorithm::pooling_max, true)},
      {"nn.global_avg_pool2d", pool(algorithm::pooling_avg_exclude_padding, true)},
      {"add", binary(algorithm::binary_add)},
      {"subtract", binary(algorithm::binary_sub)},
      {"multiply", binary(algorithm::binary_mul)},
      {"divide", binary(algorithm::binary_div)},
      {"maximum", binary(algorithm::binary_max)},
      {"minimum", binary(algorithm::binary_min)},
      {"nn.softmax", Softmax},
      {"concatenate", Concatenate},
      {"nn.layer_norm", LayerNorm},
  };
  return *builders;
}

}  // namespace

Type TypeOf(DLDataType type) {
  if (runtime::TypeMatch(type, kDLFloat, 32)) return Type::f32;
  if (runtime::TypeMatch(type, kDLBfloat, 16)) return Type::bf16;
  if (runtime::TypeMatch(type, kDLInt, 8)) return Type::s8;
  if (runtime::TypeMatch(type, kDLUInt, 8)) return Type::u8;
  if (runtime::TypeMatch(type, kDLInt, 32)) return Type::s32;
  runtime::ThrowTypeError("oneDNN takes float32, bfloat16, int8, uint8 and int32 here, got ", runtime::DLDataType2String(type));
}

Dims Operation::Positive(const char* key) const {
  Dims numbers = Numbers(key);
  for (int64_t number : numbers) {
    if (number < 1) ThrowValueError("the attribute '", key, "' of '", node->GetOpName(), "' must be positive, got ", number);
  }
  return numbers;
}

Value AddOperation(const Operation& operation) {
  if (operation.node->GetOpShape().size() != 1 || operation.ResultDims().empty()) {
    ThrowValueError("an operator of oneDNN has one result with an axis: ", operation.node->GetOpName());
  }
  std::string root = operation.Text("root");
  auto found = Builders().find(Split(root, ':').at(0));
  return found == Builders().end() ? Pointwise(operation, root) : found->second(operation);
}

}  // namespace dnnl_runtime
}  // namespace tvm
