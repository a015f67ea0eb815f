// CUDA's devices: memory, copies and streams in the primary context of each.
#ifndef TVM_SRC_CUDA_DEVICE_H_
#define TVM_SRC_CUDA_DEVICE_H_

#include <tvm/runtime/device_api.h>

#include <mutex>
#include <string>
#include <vector>

#include "driver.h"

namespace tvm {
namespace runtime {
namespace cuda {

class CUDADevices final : public DeviceAPI {
 public:
  static CUDADevices* Global();

  void SetDevice(Device dev) override;
  void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) override;
  void* AllocDataSpace(Device dev, size_t nbytes, size_t alignment, DLDataType type_hint) override;
  void FreeDataSpace(Device dev, void* ptr) override;
  TVMStreamHandle CreateStream(Device dev) override;
  void FreeStream(Device dev, TVMStreamHandle stream) override;
  void StreamSync(Device dev, TVMStreamHandle stream) override;
  void SetStream(Device dev, TVMStreamHandle stream) override;
  TVMStreamHandle GetCurrentStream(Device dev) override;
  void SyncStreamFromTo(Device dev, TVMStreamHandle src, TVMStreamHandle dst) override;

  // The calling thread's current device, whose context is current as well.
  int Enter();
  // Makes a device's context the calling thread's.
  void Enter(int device);
  static CUstream CurrentStream();

 protected:
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t num_bytes, Device dev_from,
                      Device dev_to, DLDataType type_hint, TVMStreamHandle stream) override;

 private:
  CUDADevices();
  int Attribute(int device, DeviceAttribute which) const;

  std::string missing_;  // why there is no device
  std::vector<CUdevice> devices_;
  std::mutex mutex_;
  std::vector<CUcontext> contexts_;
};

}  // namespace cuda
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_CUDA_DEVICE_H_
