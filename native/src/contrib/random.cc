// Random numbers for kernels that call tvm.contrib.random.{randint,uniform,normal}, and to fill inputs of measurements.
#include <tvm/runtime/device_api.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <cstdint>
#include <random>

namespace tvm {
namespace runtime {
namespace {

std::mt19937_64& Engine() {
  static thread_local std::mt19937_64 engine{std::random_device{}()};
  return engine;
}

template <class T, class Draw>
void Fill(const DLTensor& out, Draw draw) {
  T* data = reinterpret_cast<T*>(static_cast<char*>(out.data) + out.byte_offset);
  int64_t count = 1;
  for (int i = 0; i < out.ndim; ++i) count *= out.shape[i];
  for (int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(draw());
}

template <class Draw>
bool FillFloats(const DLTensor& out, Draw draw) {
  if (out.dtype.code != kDLFloat) return false;
  if (out.dtype.bits == 32) return Fill<float>(out, draw), true;
  if (out.dtype.bits == 64) return Fill<double>(out, draw), true;
  return false;
}

template <class Draw>
bool FillIntegers(const DLTensor& out, Draw draw) {
  if (out.dtype.code != kDLInt && out.dtype.code != kDLUInt) return false;
  switch (out.dtype.bits) {  // the bits of both kinds are the same
    case 8: return Fill<uint8_t>(out, draw), true;
    case 16: return Fill<uint16_t>(out, draw), true;
    case 32: return Fill<uint32_t>(out, draw), true;
    case 64: return Fill<uint64_t>(out, draw), true;
    default: return false;
  }
}

// Halves between 1 and 2: a random mantissa below the bits of 1.
bool FillHalves(const DLTensor& out) {
  if (out.dtype.bits != 16) return false;
  bool is_half = out.dtype.code == kDLFloat;
  if (!is_half && out.dtype.code != kDLBfloat) return false;
  uint16_t one = is_half ? 0x3c00 : 0x3f80, mantissa = is_half ? 0x3ff : 0x7f;
  Fill<uint16_t>(out, [&] { return one | (Engine()() & mantissa); });
  return true;
}

void Check(const DLTensor* array, const char* who) {
  if (array == nullptr) ThrowTypeError(who, " requires an array to fill, got None");
  const DLTensor& out = *array;
  if (out.device.device_type != kDLCPU) ThrowValueError(who, " requires an array on the CPU, got one on ", DeviceText(out.device));
  if (!IsContiguous(out)) ThrowValueError(who, " requires a contiguous array, got one with strides");
  if (out.dtype.lanes != 1) ThrowValueError(who, " requires elements of one lane");
}

[[noreturn]] void Refuse(const DLTensor& out, const char* who, const char* kinds) {
  ThrowTypeError(who, " fills arrays of ", kinds, ", got ", DLDataType2String(out.dtype));
}

void RandInt(int64_t low, int64_t high, DLTensor* out) {
  constexpr const char* kWho = "random.randint";
  if (low >= high) ThrowValueError(kWho, " requires low < high, got ", low, " and ", high);
  Check(out, kWho);
  std::uniform_int_distribution<int64_t> draw(low, high - 1);
  if (!FillIntegers(*out, [&] { return draw(Engine()); })) Refuse(*out, kWho, "integers");
}

void Uniform(double low, double high, DLTensor* out) {
  constexpr const char* kWho = "random.uniform";
  if (!(low <= high)) ThrowValueError(kWho, " requires low <= high, got ", low, " and ", high);
  Check(out, kWho);
  std::uniform_real_distribution<double> draw(low, high);
  if (!FillFloats(*out, [&] { return draw(Engine()); })) Refuse(*out, kWho, "float32 or float64");
}

void Normal(double loc, double scale, DLTensor* out) {
  constexpr const char* kWho = "random.normal";
  if (!(scale > 0)) ThrowValueError(kWho, " requires a scale above 0, got ", scale);
  Check(out, kWho);
  std::normal_distribution<double> draw(loc, scale);
  if (!FillFloats(*out, [&] { return draw(Engine()); })) Refuse(*out, kWho, "float32 or float64");
}

// Values that no arithmetic turns into denormals, infinities or NaN.
void RandomFill(DLTensor* out) {
  constexpr const char* kWho = "random.random_fill";
  Check(out, kWho);
  if (out->dtype.bits == 1) return Fill<uint8_t>(*out, [] { return Engine()() & 1; });
  std::uniform_real_distribution<double> reals(1, 10);
  std::uniform_int_distribution<int64_t> integers(1, 10);
  if (FillFloats(*out, [&] { return reals(Engine()); })) return;
  if (FillHalves(*out) || FillIntegers(*out, [&] { return integers(Engine()); })) return;
  Refuse(*out, kWho, "booleans, integers or floating-point numbers of 16 bits or more");
}

TVM_REGISTER_GLOBAL("tvm.contrib.random.seed").set_body_typed([](int64_t seed) {
  Engine().seed(static_cast<uint64_t>(seed));
});
TVM_REGISTER_GLOBAL("tvm.contrib.random.randint").set_body_typed(RandInt);
TVM_REGISTER_GLOBAL("tvm.contrib.random.uniform").set_body_typed(Uniform);
TVM_REGISTER_GLOBAL("tvm.contrib.random.normal").set_body_typed(Normal);
TVM_REGISTER_GLOBAL("tvm.contrib.random.random_fill").set_body_typed(RandomFill);
TVM_REGISTER_GLOBAL("tvm.contrib.random.random_fill_for_measure").set_body_typed(RandomFill);

}  // namespace
}  // namespace runtime
}  // namespace tvm
