// The launch parameters and scalar arguments of kernels.
#include "kernel.h"

#include <tvm/runtime/device_api.h>
#include <tvm/runtime/registry.h>

#include <cstring>

namespace tvm {
namespace runtime {
namespace gpu {
namespace {

constexpr const char* kDynamicMemoryParam = "tir.use_dyn_shared_memory";

int PlaceOf(const std::string& param) {
  static const char* const kAxes[] = {"blockIdx.x",  "blockIdx.y",  "blockIdx.z",
                                      "threadIdx.x", "threadIdx.y", "threadIdx.z", kDynamicMemoryParam};
  for (int i = 0; i < 7; ++i) {
    if (param == kAxes[i]) return i;
  }
  ThrowValueError("a kernel is launched over blockIdx and threadIdx in x, y and z, got the axis '", param, "'");
}

template <class T>
Scalar Store(T value) {
  Scalar scalar{};
  std::memcpy(scalar.bytes, &value, sizeof(T));
  scalar.size = sizeof(T);
  return scalar;
}

Scalar Integer(int64_t value, int bits) {
  switch (bits) {
    case 1:
    case 8: return Store(static_cast<int8_t>(value));
    case 16: return Store(static_cast<int16_t>(value));
    case 32: return Store(static_cast<int32_t>(value));
    case 64: return Store(value);
    default: ThrowTypeError("kernels take integers of 8, 16, 32 or 64 bits, got ", bits);
  }
}

}  // namespace

void KernelInfo::Save(dmlc::Stream* stream) const {
  stream->Write(name);
  stream->Write(arg_types);
  stream->Write(launch_params);
}

bool KernelInfo::Load(dmlc::Stream* stream) {
  return stream->Read(&name) && stream->Read(&arg_types) && stream->Read(&launch_params);
}

KernelTable ReadKernelTable(TVMArgs args, int first) {
  KernelTable table;
  int at = first;
  auto texts = [&] {
    std::vector<std::string> found;
    for (int left = args[at++]; left > 0; --left) found.push_back(args[at++]);
    return found;
  };
  while (at < args.num_args) {
    KernelInfo info;
    info.name = args[at++].operator std::string();
    for (const std::string& type : texts()) info.arg_types.push_back(String2DLDataType(type));
    info.launch_params = texts();
    table.emplace(info.name, info);
  }
  return table;
}

std::string Launch::Text() const {
  auto extents = [](const std::array<size_t, 3>& e) { return Cat("(", e[0], ", ", e[1], ", ", e[2], ")"); };
  return Cat("grid ", extents(grid), ", block ", extents(block), ", ", dynamic_bytes, " bytes of dynamic shared memory");
}

LaunchReader::LaunchReader(const KernelInfo& info) : first_(static_cast<int>(info.arg_types.size())) {
  for (const std::string& param : info.launch_params) places_.push_back(PlaceOf(param));
}

Launch LaunchReader::Read(const TVMArgs& args) const {
  int expected = first_ + static_cast<int>(places_.size());
  if (args.num_args != expected) ThrowTypeError("the kernel takes ", expected, " arguments, got ", args.num_args);
  Launch launch;
  for (size_t i = 0; i < places_.size(); ++i) {
    int64_t value = args[first_ + static_cast<int>(i)];
    size_t extent = value > 0 ? static_cast<size_t>(value) : 0;
    int place = places_[i];
    if (place == kDynamicMemory) {
      launch.dynamic_bytes = extent;
    } else {
      (place < 3 ? launch.grid : launch.block)[place % 3] = extent;
    }
  }
  return launch;
}

Scalar ReadScalar(const TVMArgs& args, int index, DLDataType type) {
  if (type.code == kDLFloat) {
    double value = args[index];
    if (type.bits == 64) return Store(value);
    if (type.bits == 32) return Store(static_cast<float>(value));
  } else if (type.code == kDLInt || type.code == kDLUInt) {
    return Integer(args[index].operator int64_t(), type.bits);
  }
  ThrowTypeError("kernels take integers, float32 and float64 beside pointers, got ", DLDataType2String(type));
}

// (kind of device, number): where the calling thread's kernels run from now on
TVM_REGISTER_GLOBAL("__tvm_set_device").set_body([](TVMArgs args, TVMRetValue*) {
  DLDevice device{static_cast<DLDeviceType>(int(args[0])), int(args[1])};
  DeviceAPI::Get(device)->SetDevice(device);
});

}  // namespace gpu
}  // namespace runtime
}  // namespace tvm
