// OpenCL's devices and their memory.
//
// The address of an array on a device is one that the host never reads: it lies in a range that is reserved for the
// array alone, so that addresses inside of arrays can be computed as on the host, and lead back to OpenCL's object.
#ifndef TVM_SRC_OPENCL_DEVICE_H_
#define TVM_SRC_OPENCL_DEVICE_H_

#include <tvm/runtime/device_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "cl.h"

namespace tvm {
namespace runtime {
namespace opencl {

struct DeviceState {
  cl_device_id id;
  cl_context context;
  cl_command_queue queue;
  size_t part_alignment;  // of memory that kernels are given from inside of an array
  std::string build_options;
};

class OpenCLDevices final : public DeviceAPI {
 public:
  static OpenCLDevices* Global();

  void SetDevice(Device dev) override;
  void GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) override;
  void* AllocDataSpace(Device dev, size_t nbytes, size_t alignment, DLDataType type_hint) override;
  void FreeDataSpace(Device dev, void* ptr) override;
  TVMStreamHandle CreateStream(Device dev) override;
  void FreeStream(Device dev, TVMStreamHandle stream) override;
  void StreamSync(Device dev, TVMStreamHandle stream) override;
  void SetStream(Device dev, TVMStreamHandle stream) override;
  TVMStreamHandle GetCurrentStream(Device dev) override;

  // The calling thread's current device.
  static int Current();
  DeviceState& State(int device);
  // Where the calling thread's work on a device goes.
  cl_command_queue Queue(int device);
  // OpenCL's object for the memory at an address, from there on; `argument` describes it in errors.
  cl_mem MemoryAt(const void* address, int device, int argument);

 protected:
  void CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t num_bytes, Device dev_from,
                      Device dev_to, DLDataType type_hint, TVMStreamHandle stream) override;

 private:
  struct Allocation {
    size_t size;
    size_t reserved;
    int device;
    cl_mem memory;
    std::map<size_t, cl_mem> parts;  // by their offsets
  };
  struct Place {
    Allocation* allocation;
    size_t offset;
  };

  OpenCLDevices();
  Place Find(const void* address);

  std::vector<DeviceState> devices_;
  std::string missing_;  // why there is no device
  std::shared_mutex mutex_;
  std::map<uintptr_t, Allocation> allocations_;
};

}  // namespace opencl
}  // namespace runtime
}  // namespace tvm
#endif  // TVM_SRC_OPENCL_DEVICE_H_
