// The table of device kinds, and the processor itself.
#include <tvm/runtime/device_api.h>
#include <sys/mman.h>
#include <tvm/runtime/ndarray.h>
#include <tvm/runtime/registry.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "workspace_pool.h"

namespace tvm {
namespace runtime {
namespace {

constexpr size_t kLargePage = size_t{2} << 20;
constexpr int kMaxDeviceTypes = 64;
constexpr int kRemoteDeviceType = kMaxDeviceTypes - 1;

class CPUDeviceAPI : public DeviceAPI {
 public:
  void GetAttr(DLDevice, DeviceAttrKind kind, TVMRetValue* rv) override {
    if (kind == kExist) *rv = 1;
  }

  void* AllocDataSpace(DLDevice, size_t nbytes, size_t alignment, DLDataType) override {
    void* ptr = nullptr;
    // large arrays in large pages: a hundredth of the page faults, and fewer misses of the TLB
    bool is_large = nbytes >= 2 * kLargePage;
    if (is_large) alignment = kLargePage;
    // one unit even for an empty array: its address must be valid and distinct
    if (posix_memalign(&ptr, alignment, nbytes == 0 ? alignment : nbytes) != 0) {
      ThrowError("out of memory: cannot allocate ", nbytes, " bytes on cpu");
    }
#ifdef MADV_HUGEPAGE
    if (is_large) madvise(ptr, nbytes, MADV_HUGEPAGE);
#endif
    return ptr;
  }

  void FreeDataSpace(DLDevice, void* ptr) override { free(ptr); }

  void StreamSync(DLDevice, TVMStreamHandle) override {}

  void* AllocWorkspace(DLDevice, size_t nbytes, DLDataType) override {
    return WorkspacePool::ThreadLocal().Alloc(nbytes);
  }
  void FreeWorkspace(DLDevice, void* ptr) override { WorkspacePool::ThreadLocal().Free(ptr); }

 protected:
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t num_bytes, DLDevice, DLDevice,
                      DLDataType, TVMStreamHandle) override {
    if (num_bytes == 0) return;
    std::memmove(static_cast<char*>(to) + to_offset, static_cast<const char*>(from) + from_offset, num_bytes);
  }
};

// The extension device of this runtime: memory of its own on the host, whose code runs on the processor. What is on it
// gets there and back by copies alone, as on any other device; a library may register another "device_api.ext_dev".
class ExtDeviceAPI final : public CPUDeviceAPI {
 public:
  void GetAttr(DLDevice, DeviceAttrKind kind, TVMRetValue* rv) override {
    if (kind == kExist) *rv = 1;
    if (kind == kDeviceName) *rv = "processor";
  }
  void* AllocWorkspace(DLDevice device, size_t nbytes, DLDataType hint) override {
    return AllocDataSpace(device, nbytes, kAllocAlignment, hint);
  }
  void FreeWorkspace(DLDevice device, void* ptr) override { FreeDataSpace(device, ptr); }
};

DeviceAPI* OwnExtDevice() {
  static ExtDeviceAPI api;
  return &api;
}

std::atomic<DeviceAPI*>* Table() {
  static std::atomic<DeviceAPI*>* table = [] {
    auto* apis = new std::atomic<DeviceAPI*>[kMaxDeviceTypes]();
    apis[kDLCPU] = new CPUDeviceAPI();
    return apis;
  }();
  return table;
}

// The interface that somebody has registered for a kind of device, or else our own of that kind; null if there is none.
DeviceAPI* FindRegistered(int type) {
  PackedFunc create = Registry::Find(Cat("device_api.", DeviceName(type)));
  if (!create.defined()) return type == kDLExtDev ? OwnExtDevice() : nullptr;
  auto* api = static_cast<DeviceAPI*>(create().operator void*());
  if (api != nullptr) Table()[type] = api;
  return api;
}

}  // namespace

void* DeviceAPI::AllocDataSpace(DLDevice device, int ndim, const int64_t* shape, DLDataType dtype, Optional<String> mem_scope) {
  String scope = mem_scope.value_or("");
  if (!scope.empty() && scope != "global") ThrowValueError(DeviceText(device), " has no memory of scope '", scope, "'");
  size_t nbytes = ElementBytes(dtype);
  for (int i = 0; i < ndim; ++i) nbytes *= static_cast<size_t>(shape[i]);
  return AllocDataSpace(device, nbytes, kAllocAlignment, dtype);
}

void DeviceAPI::CopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream) {
  size_t nbytes = DataBytes(*from);
  if (nbytes != DataBytes(*to)) ThrowValueError("a copy needs arrays of one size, got ", nbytes, " and ", DataBytes(*to), " bytes");
  if (!IsContiguous(*from) || !IsContiguous(*to)) ThrowValueError("a copy needs contiguous arrays, got one with strides");
  CopyDataFromTo(from->data, from->byte_offset, to->data, to->byte_offset, nbytes, from->device, to->device, from->dtype,
                 stream);
}

void DeviceAPI::CopyDataFromTo(const void*, size_t, void*, size_t, size_t, DLDevice from, DLDevice to, DLDataType,
                               TVMStreamHandle) {
  ThrowError("this kind of device cannot copy from ", DeviceText(from), " to ", DeviceText(to));
}

void* DeviceAPI::AllocWorkspace(DLDevice device, size_t nbytes, DLDataType hint) {
  return AllocDataSpace(device, nbytes, kAllocAlignment, hint);
}

void DeviceAPI::FreeWorkspace(DLDevice device, void* ptr) { FreeDataSpace(device, ptr); }

DeviceAPI* DeviceAPI::Get(DLDevice device, bool allow_missing) {
  // devices of all sessions have one interface, in a row of its own
  int type = device.device_type >= kRPCSessMask ? kRemoteDeviceType : static_cast<int>(device.device_type);
  bool is_known = type >= 0 && type < kMaxDeviceTypes;
  DeviceAPI* api = is_known ? Table()[type].load() : nullptr;
  if (api == nullptr && is_known) api = FindRegistered(type);
  if (api == nullptr && !allow_missing) {
    ThrowError("this runtime has no support for device ", DeviceText(device));
  }
  return api;
}

const char* DeviceName(int device_type) {
  switch (device_type) {
    case kDLCPU: return "cpu";
    case kDLCUDA: return "cuda";
    case kDLCUDAHost: return "cuda_host";
    case kDLOpenCL: return "opencl";
    case kDLVulkan: return "vulkan";
    case kDLMetal: return "metal";
    case kDLVPI: return "vpi";
    case kDLROCM: return "rocm";
    case kDLROCMHost: return "rocm_host";
    case kDLExtDev: return "ext_dev";
    case kDLOneAPI: return "oneapi";
    case kDLWebGPU: return "webgpu";
    case kDLHexagon: return "hexagon";
    case kRemoteDeviceType: return "rpc";
    default: return "unknown";
  }
}

std::string DeviceText(DLDevice device) {
  int type = device.device_type;
  if (type >= kRPCSessMask) {
    return Cat("remote[", type / kRPCSessMask - 1, "]:", DeviceName(type % kRPCSessMask), "(", device.device_id, ")");
  }
  return Cat(DeviceName(type), "(", device.device_id, ")");
}

TVM_REGISTER_GLOBAL("device_api.cpu").set_body([](TVMArgs, TVMRetValue* rv) {
  *rv = static_cast<void*>(DeviceAPI::Get(DLDevice{kDLCPU, 0}));
});

// (bytes; address, kind and number of the device, of the source and of the destination): what compiled models call
TVM_REGISTER_GLOBAL("runtime.device_copy").set_body([](TVMArgs args, TVMRetValue*) {
  if (args.num_args != 7) ThrowTypeError("device_copy takes bytes, and address, kind and number of device of both ends");
  int64_t count = args[0];
  DLDataType dtype{kDLUInt, 8, 1};
  auto tensor = [&](int first) {
    DLDevice device{static_cast<DLDeviceType>(int(args[first + 1])), int(args[first + 2])};
    return DLTensor{args[first].operator void*(), device, 1, dtype, &count, nullptr, 0};
  };
  DLTensor from = tensor(1), to = tensor(4);
  NDArray::CopyFromTo(&from, &to);
});

TVM_REGISTER_GLOBAL("runtime.GetDeviceAttr").set_body([](TVMArgs args, TVMRetValue* rv) {
  DLDevice device{static_cast<DLDeviceType>(int(args[0])), int(args[1])};
  auto kind = static_cast<DeviceAttrKind>(int(args[2]));
  DeviceAPI* api = DeviceAPI::Get(device, kind == kExist);
  if (api == nullptr) {
    *rv = 0;
  } else {
    api->GetAttr(device, kind, rv);
  }
});

}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

int TVMStreamCreate(int device_type, int device_id, TVMStreamHandle* out) {
  TVM_API_BEGIN();
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  *out = DeviceAPI::Get(device)->CreateStream(device);
  TVM_API_END();
}

int TVMStreamFree(int device_type, int device_id, TVMStreamHandle stream) {
  TVM_API_BEGIN();
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  DeviceAPI::Get(device)->FreeStream(device, stream);
  TVM_API_END();
}

int TVMSetStream(int device_type, int device_id, TVMStreamHandle stream) {
  TVM_API_BEGIN();
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  DeviceAPI::Get(device)->SetStream(device, stream);
  TVM_API_END();
}

int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream) {
  TVM_API_BEGIN();
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  DeviceAPI::Get(device)->StreamSync(device, stream);
  TVM_API_END();
}

int TVMStreamStreamSynchronize(int device_type, int device_id, TVMStreamHandle src, TVMStreamHandle dst) {
  TVM_API_BEGIN();
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  DeviceAPI::Get(device)->SyncStreamFromTo(device, src, dst);
  TVM_API_END();
}

int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment, DLDataType type_hint, void** out_data) {
  TVM_API_BEGIN();
  *out_data = DeviceAPI::Get(dev)->AllocDataSpace(dev, nbytes, alignment, type_hint);
  TVM_API_END();
}

int TVMDeviceAllocDataSpaceWithScope(DLDevice dev, int ndim, const int64_t* shape, DLDataType dtype, const char* mem_scope,
                                     void** out_data) {
  TVM_API_BEGIN();
  Optional<String> scope = mem_scope == nullptr ? Optional<String>() : Optional<String>(mem_scope);
  *out_data = DeviceAPI::Get(dev)->AllocDataSpace(dev, ndim, shape, dtype, scope);
  TVM_API_END();
}

int TVMDeviceFreeDataSpace(DLDevice dev, void* ptr) {
  TVM_API_BEGIN();
  DeviceAPI::Get(dev)->FreeDataSpace(dev, ptr);
  TVM_API_END();
}

int TVMDeviceCopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream) {
  TVM_API_BEGIN();
  DLDevice device = from->device.device_type != kDLCPU ? from->device : to->device;
  DeviceAPI::Get(device)->CopyDataFromTo(from, to, stream);
  TVM_API_END();
}
