// A number format for programs that try data types of their own: 32 bits that are those of a float.
#include <tvm/runtime/c_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace {

float AsFloat(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

uint32_t AsBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

extern "C" {

TVM_DLL uint32_t MinCustom32() { return AsBits(std::numeric_limits<float>::lowest()); }
TVM_DLL uint32_t FloatToCustom32(float value) { return AsBits(value); }
TVM_DLL float Custom32ToFloat(uint32_t a) { return AsFloat(a); }
TVM_DLL uint32_t Custom32Add(uint32_t a, uint32_t b) { return AsBits(AsFloat(a) + AsFloat(b)); }
TVM_DLL uint32_t Custom32Sub(uint32_t a, uint32_t b) { return AsBits(AsFloat(a) - AsFloat(b)); }
TVM_DLL uint32_t Custom32Mul(uint32_t a, uint32_t b) { return AsBits(AsFloat(a) * AsFloat(b)); }
TVM_DLL uint32_t Custom32Div(uint32_t a, uint32_t b) { return AsBits(AsFloat(a) / AsFloat(b)); }
TVM_DLL uint32_t Custom32Max(uint32_t a, uint32_t b) {
  return AsBits(std::fmax(AsFloat(a), AsFloat(b)));
}
TVM_DLL uint32_t Custom32Sqrt(uint32_t a) { return AsBits(std::sqrt(AsFloat(a))); }
TVM_DLL uint32_t Custom32Exp(uint32_t a) { return AsBits(std::exp(AsFloat(a))); }
TVM_DLL uint32_t Custom32Log(uint32_t a) { return AsBits(std::log(AsFloat(a))); }
TVM_DLL uint32_t Custom32Sigmoid(uint32_t a) { return AsBits(1 / (1 + std::exp(-AsFloat(a)))); }
TVM_DLL uint32_t Custom32Tanh(uint32_t a) { return AsBits(std::tanh(AsFloat(a))); }

}  // extern "C"
