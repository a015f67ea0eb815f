// What the runtime asks of a kind of device.
#ifndef TVM_RUNTIME_DEVICE_API_H_
#define TVM_RUNTIME_DEVICE_API_H_

#include <tvm/runtime/packed_func.h>

#include <string>

namespace tvm {
namespace runtime {

enum DeviceAttrKind : int {
  kExist = 0,
  kMaxThreadsPerBlock = 1,
  kWarpSize = 2,
  kMaxSharedMemoryPerBlock = 3,
  kComputeVersion = 4,
  kDeviceName = 5,
  kMaxClockRate = 6,
  kMultiProcessorCount = 7,
  kMaxThreadDimensions = 8,
  kMaxRegistersPerBlock = 9,
  kGcnArch = 10,
  kApiVersion = 11,
  kDriverVersion = 12,
  kL2CacheSizeBytes = 13,
  kTotalGlobalMemory = 14,
  kAvailableGlobalMemory = 15,
};

class TVM_DLL DeviceAPI {
 public:
  virtual ~DeviceAPI() = default;
  virtual void GetAttr(DLDevice device, DeviceAttrKind kind, TVMRetValue* rv) = 0;
  virtual void* AllocDataSpace(DLDevice device, size_t nbytes, size_t alignment, DLDataType hint) = 0;
  virtual void FreeDataSpace(DLDevice device, void* ptr) = 0;
  virtual void CopyDataFromTo(const DLTensor* from, DLTensor* to, TVMStreamHandle stream) = 0;
  virtual void StreamSync(DLDevice device, TVMStreamHandle stream) = 0;
  virtual TVMStreamHandle CreateStream(DLDevice) { return nullptr; }
  virtual void FreeStream(DLDevice, TVMStreamHandle) {}
  virtual void SetStream(DLDevice, TVMStreamHandle) {}
  virtual void* AllocWorkspace(DLDevice device, size_t nbytes, DLDataType hint);
  virtual void FreeWorkspace(DLDevice device, void* ptr);

  // The interface of a device; raises if this runtime has none for it.
  static DeviceAPI* Get(DLDevice device, bool allow_missing = false);
  // A new kind registers itself; the object lives for ever.
  static void Register(int device_type, DeviceAPI* api);
};

TVM_DLL const char* DeviceName(int device_type);
TVM_DLL std::string DeviceText(DLDevice device);

}  // namespace runtime
}  // namespace tvm
#endif  // TVM_RUNTIME_DEVICE_API_H_
