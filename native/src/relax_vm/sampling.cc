// Drawing tokens: from the probabilities of the next one, on the host.
#include <tvm/runtime/registry.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "builtin.h"

namespace tvm {
namespace runtime {
namespace relax_vm {
namespace {

// The float32 elements of the last axis, of a tensor with one row.
float* OneRow(const TVMArgValue& value, const char* who, int64_t* count) {
  const DLTensor& tensor = HostTensor(value, who);
  if (tensor.dtype.code != kDLFloat || tensor.dtype.bits != 32 || tensor.ndim == 0) ThrowTypeError(who, " needs a tensor of float32, got ", DLDataType2String(tensor.dtype));
  *count = tensor.shape[tensor.ndim - 1];
  for (int i = 0; i + 1 < tensor.ndim; ++i) {
    if (tensor.shape[i] != 1) ThrowValueError(who, " needs one row, got the shape ", ShapeText(tensor.shape, tensor.ndim));
  }
  if (*count == 0) ThrowValueError(who, " needs elements");
  return DataOf<float>(tensor);
}

// The token at which the sum of the likeliest probabilities, cut off at top_p of all, passes `uniform` of it.
int64_t SampleTopP(std::vector<float> probabilities, double top_p, double uniform) {
  std::vector<int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return probabilities[a] > probabilities[b]; });
  double kept = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || kept < top_p)) kept += probabilities[order[count++]];
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += probabilities[order[i]];
    if (uniform * kept < sum) return order[i];
  }
  return order[count - 1];
}

void Softmax(float* values, int64_t count, double temperature) {
  double largest = *std::max_element(values, values + count), sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += values[i] = static_cast<float>(std::exp((values[i] - largest) / temperature));
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(values[i] / sum);
}

// The likeliest token; any temperature above 0 draws one.
int64_t FromLogits(const float* logits, int64_t count, double temperature, double top_p, double uniform) {
  if (temperature < 1e-6) return std::max_element(logits, logits + count) - logits;
  std::vector<float> values(logits, logits + count);
  Softmax(values.data(), count, temperature);
  return SampleTopP(std::move(values), top_p, uniform);
}

// Calls f with each token of a tensor of int32 or int64.
template <class F>
void ForTokens(const TVMArgValue& value, const char* who, int64_t vocabulary, F f) {
  const DLTensor& tokens = HostTensor(value, who);
  int64_t count = 1;
  for (int i = 0; i < tokens.ndim; ++i) count *= tokens.shape[i];
  for (int64_t i = 0; i < count; ++i) {
    int64_t token = tokens.dtype.bits == 64 ? DataOf<int64_t>(tokens)[i] : DataOf<int32_t>(tokens)[i];
    if (token < 0 || token >= vocabulary) ThrowValueError(who, ": there is no token ", token, " of ", vocabulary);
    f(token, i);
  }
}

}  // namespace

// (logits, temperature, top_p, uniform sample)
TVM_REGISTER_GLOBAL("vm.builtin.sample_top_p_from_logits").set_body([](TVMArgs args, TVMRetValue* rv) {
  int64_t count;
  const float* logits = OneRow(args[0], "sample_top_p_from_logits", &count);
  *rv = FromLogits(logits, count, args[1], args[2], args[3]);
});

// (probabilities, top_p, uniform sample)
TVM_REGISTER_GLOBAL("vm.builtin.sample_top_p_from_prob").set_body([](TVMArgs args, TVMRetValue* rv) {
  int64_t count;
  const float* values = OneRow(args[0], "sample_top_p_from_prob", &count);
  *rv = SampleTopP(std::vector<float>(values, values + count), args[1], args[2]);
});

// (probabilities of rows, uniform sample of each row): the tokens, of int64
TVM_REGISTER_GLOBAL("vm.builtin.multinomial_from_uniform").set_body([](TVMArgs args, TVMRetValue* rv) {
  const char* who = "multinomial_from_uniform";
  const DLTensor& values = HostTensor(args[0], who);
  const DLTensor& uniform = HostTensor(args[1], who);
  if (values.ndim != 2 || uniform.ndim != 2 || values.shape[0] != uniform.shape[0] || uniform.shape[1] != 1) {
    ThrowValueError(who, " needs probabilities (rows, tokens) and samples (rows, 1), got ", ShapeText(values.shape, values.ndim), " and ",
                    ShapeText(uniform.shape, uniform.ndim));
  }
  NDArray tokens = NDArray::Empty({values.shape[0], 1}, DLDataType{kDLInt, 64, 1}, values.device);
  for (int64_t row = 0; row < values.shape[0]; ++row) {
    const float* at = DataOf<float>(values) + row * values.shape[1];
    double sum = 0;
    int64_t token = 0;
    for (; token < values.shape[1] - 1; ++token) {
      sum += at[token];
      if (sum > DataOf<float>(uniform)[row]) break;
    }
    DataOf<int64_t>(*tokens.tensor())[row] = token;
  }
  *rv = tokens;
});

// (logits, tokens that occurred, penalty), in place
TVM_REGISTER_GLOBAL("vm.builtin.apply_repetition_penalty").set_body([](TVMArgs args, TVMRetValue*) {
  int64_t count;
  float* logits = OneRow(args[0], "apply_repetition_penalty", &count);
  double penalty = args[2];
  ForTokens(args[1], "apply_repetition_penalty", count, [&](int64_t token, int64_t) {
    logits[token] = static_cast<float>(logits[token] > 0 ? logits[token] / penalty : logits[token] * penalty);
  });
});

// (logits, tokens that occurred, how often, presence penalty, frequency penalty), in place
TVM_REGISTER_GLOBAL("vm.builtin.apply_presence_and_frequency_penalty").set_body([](TVMArgs args, TVMRetValue*) {
  const char* who = "apply_presence_and_frequency_penalty";
  int64_t count;
  float* logits = OneRow(args[0], who, &count);
  const DLTensor& frequencies = HostTensor(args[2], who);
  double presence = args[3], frequency = args[4];
  ForTokens(args[1], who, count, [&](int64_t token, int64_t i) {
    int64_t often = frequencies.dtype.bits == 64 ? DataOf<int64_t>(frequencies)[i] : DataOf<int32_t>(frequencies)[i];
    logits[token] -= static_cast<float>(often * frequency + presence);
  });
});

// (logits, temperature), in place
TVM_REGISTER_GLOBAL("vm.builtin.apply_softmax_with_temperature").set_body([](TVMArgs args, TVMRetValue*) {
  int64_t count;
  float* logits = OneRow(args[0], "apply_softmax_with_temperature", &count);
  double temperature = args[1];
  if (temperature < 1e-6) {
    int64_t best = std::max_element(logits, logits + count) - logits;
    std::fill(logits, logits + count, 0.0f);
    logits[best] = 1.0f;
    return;
  }
  Softmax(logits, count, temperature);
});

}  // namespace relax_vm
}  // namespace runtime
}  // namespace tvm
