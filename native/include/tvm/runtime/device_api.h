// What the runtime asks of a kind of device.
#ifndef TVM_RUNTIME_DEVICE_API_H_
#define TVM_RUNTIME_DEVICE_API_H_

#include <tvm/runtime/packed_func.h>

#include <ostream>
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
  kImagePitchAlignment = 16,
};

// A kind of device of one's own:
//
//     class MyDevice : public DeviceAPI { ... };
//     TVM_REGISTER_GLOBAL("device_api.ext_dev").set_body([](TVMArgs args, TVMRetValue* rv) {
//       static MyDevice api;
//       *rv = static_cast<void*>(&api);
//     });
class TVM_DLL DeviceAPI {
 public:
  virtual ~DeviceAPI() = default;
  // Makes the device the calling thread's current one, where a kind of device has such a notion.
  virtual void SetDevice(Device dev) {}
  virtual void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) = 0;
  virtual void* AllocDataSpace(Device dev, size_t nbytes, size_t alignment, DLDataType type_hint) = 0;
  // In one of the device's kinds of memory. By default there is but the usual one, "global".
  virtual void* AllocDataSpace(Device dev, int ndim, const int64_t* shape, DLDataType dtype, Optional<String> mem_scope = NullOpt);
  virtual void FreeDataSpace(Device dev, void* ptr) = 0;
  // Between arrays of the same size; by default the bytes are handed to the function below.
  virtual void CopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream);
  virtual TVMStreamHandle CreateStream(Device dev) { return nullptr; }
  virtual void FreeStream(Device dev, TVMStreamHandle stream) {}
  virtual void StreamSync(Device dev, TVMStreamHandle stream) = 0;
  virtual void SetStream(Device dev, TVMStreamHandle stream) {}
  virtual TVMStreamHandle GetCurrentStream(Device dev) { return nullptr; }
  // Lets what `dst` does next wait for what `src` has been given.
  virtual void SyncStreamFromTo(Device dev, TVMStreamHandle src, TVMStreamHandle dst) { StreamSync(dev, src); }
  virtual void* AllocWorkspace(Device dev, size_t nbytes, DLDataType type_hint = {});
  virtual void FreeWorkspace(Device dev, void* ptr);

  // The interface of a device, from `device_api.<name>` at its first use; raises if there is none.
  static DeviceAPI* Get(Device dev, bool allow_missing = false);

 protected:
  virtual void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t num_bytes,
                              Device dev_from, Device dev_to, DLDataType type_hint, TVMStreamHandle stream);
};

// The type of a remote device is that of the device there, and this much for each session.
constexpr int kRPCSessMask = 128;
inline bool IsRPCSessionDevice(Device dev) { return dev.device_type / kRPCSessMask > 0; }
inline int GetRPCSessionIndex(Device dev) { return dev.device_type / kRPCSessMask - 1; }
inline Device RemoveRPCSessionMask(Device dev) {
  dev.device_type = static_cast<DLDeviceType>(dev.device_type % kRPCSessMask);
  return dev;
}
inline Device AddRPCSessionMask(Device dev, int session_table_index) {
  dev.device_type = static_cast<DLDeviceType>(dev.device_type + kRPCSessMask * (session_table_index + 1));
  return dev;
}

TVM_DLL const char* DeviceName(int device_type);
TVM_DLL std::string DeviceText(DLDevice device);
inline const char* DLDeviceType2Str(int type) { return DeviceName(type); }

}  // namespace runtime
}  // namespace tvm

// "cpu:0", "remote[0]-cuda:1"
inline std::ostream& operator<<(std::ostream& os, DLDevice dev) {
  if (tvm::runtime::IsRPCSessionDevice(dev)) {
    os << "remote[" << tvm::runtime::GetRPCSessionIndex(dev) << "]-";
    dev = tvm::runtime::RemoveRPCSessionMask(dev);
  }
  return os << tvm::runtime::DeviceName(dev.device_type) << ":" << dev.device_id;
}
#endif  // TVM_RUNTIME_DEVICE_API_H_
