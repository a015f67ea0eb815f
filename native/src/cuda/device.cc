// CUDA's devices as the runtime sees them.
#include "device.h"

#include <tvm/runtime/registry.h>

#include <algorithm>

#include "../fork.h"

namespace tvm {
namespace runtime {
namespace cuda {
namespace {

thread_local int current_device = 0;
thread_local CUstream current_stream = nullptr;

bool IsHost(Device dev) { return dev.device_type == kDLCPU || dev.device_type == kDLCUDAHost; }

const Driver& Functions() { return *FindDriver(); }

CUdeviceptr Address(const void* base, size_t offset) { return reinterpret_cast<CUdeviceptr>(base) + offset; }

}  // namespace

CUDADevices::CUDADevices() {
  const Driver* driver = FindDriver();
  if (driver == nullptr) {
    missing_ = "no library libcuda.so.1 can be loaded, which NVIDIA's driver brings";
    return;
  }
  int count = 0;
  CUresult code = driver->Init(0);
  if (code == CUDA_SUCCESS) code = driver->DeviceGetCount(&count);
  for (int i = 0; code == CUDA_SUCCESS && i < count; ++i) {
    CUdevice device;
    code = driver->DeviceGet(&device, i);
    if (code == CUDA_SUCCESS) devices_.push_back(device);
  }
  contexts_.resize(devices_.size());
  if (devices_.empty()) missing_ = code == CUDA_SUCCESS ? "the driver knows of no device" : ErrorName(code);
}

CUDADevices* CUDADevices::Global() {
  static auto* devices = new CUDADevices();
  return devices;
}

void CUDADevices::Enter(int device) {
  if (devices_.empty()) ThrowError("CUDA cannot be used: ", missing_);
  if (device < 0 || device >= static_cast<int>(devices_.size())) {
    ThrowValueError("there are ", devices_.size(), " CUDA devices, got cuda(", device, ")");
  }
  static const uint32_t own_generation = ForkGeneration();
  if (ForkGeneration() != own_generation) {
    ThrowError("CUDA cannot be used in a process that was forked from one that uses it; start it anew (spawn)");
  }
  CUcontext context;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (contexts_[device] == nullptr) {
      Check(Functions().DevicePrimaryCtxRetain(&contexts_[device], devices_[device]), "cuDevicePrimaryCtxRetain");
    }
    context = contexts_[device];
  }
  Check(Functions().CtxSetCurrent(context), "cuCtxSetCurrent");
}

int CUDADevices::Enter() {
  Enter(current_device);
  return current_device;
}

CUstream CUDADevices::CurrentStream() { return current_stream; }

void CUDADevices::SetDevice(Device dev) {
  Enter(dev.device_id);
  current_device = dev.device_id;
}

int CUDADevices::Attribute(int device, DeviceAttribute which) const {
  int value = 0;
  Check(Functions().DeviceGetAttribute(&value, which, devices_[device]), "cuDeviceGetAttribute");
  return value;
}

void CUDADevices::GetAttr(Device dev, DeviceAttrKind kind, TVMRetValue* rv) {
  int device = dev.device_id;
  if (kind == kExist) {
    *rv = static_cast<int>(device >= 0 && device < static_cast<int>(devices_.size()));
    return;
  }
  Enter(device);
  switch (kind) {
    case kMaxThreadsPerBlock: *rv = Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK); break;
    case kWarpSize: *rv = Attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE); break;
    case kMaxSharedMemoryPerBlock: *rv = Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK); break;
    case kComputeVersion:
      *rv = Cat(Attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), ".",
                Attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
      break;
    case kDeviceName: {
      char name[256] = {};
      Check(Functions().DeviceGetName(name, sizeof(name), devices_[device]), "cuDeviceGetName");
      *rv = std::string(name);
      break;
    }
    case kMaxClockRate: *rv = Attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE); break;
    case kMultiProcessorCount: *rv = Attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT); break;
    case kMaxThreadDimensions:
      *rv = Cat("[", Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), ", ",
                Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y), ", ",
                Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z), "]");
      break;
    case kMaxRegistersPerBlock: *rv = Attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK); break;
    case kApiVersion: {
      int version = 0;
      Check(Functions().DriverGetVersion(&version), "cuDriverGetVersion");
      *rv = version;
      break;
    }
    case kL2CacheSizeBytes: *rv = Attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE); break;
    case kTotalGlobalMemory: {
      size_t bytes = 0;
      Check(Functions().DeviceTotalMem(&bytes, devices_[device]), "cuDeviceTotalMem");
      *rv = static_cast<int64_t>(bytes);
      break;
    }
    case kAvailableGlobalMemory: {
      size_t free_bytes = 0, total = 0;
      Check(Functions().MemGetInfo(&free_bytes, &total), "cuMemGetInfo");
      *rv = static_cast<int64_t>(free_bytes);
      break;
    }
    default: break;
  }
}

void* CUDADevices::AllocDataSpace(Device dev, size_t nbytes, size_t, DLDataType) {
  Enter(dev.device_id);
  size_t size = nbytes == 0 ? 1 : nbytes;
  void* pinned = nullptr;
  CUdeviceptr address = 0;
  CUresult code = dev.device_type == kDLCUDAHost ? Functions().MemAllocHost(&pinned, size) : Functions().MemAlloc(&address, size);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free_bytes = 0, total = 0;
    Functions().MemGetInfo(&free_bytes, &total);
    ThrowError("out of memory: cannot allocate ", nbytes, " bytes on ", DeviceText(dev), ", which has ", free_bytes, " of ",
               total, " free");
  }
  Check(code, "cuMemAlloc");
  return dev.device_type == kDLCUDAHost ? pinned : reinterpret_cast<void*>(address);
}

void CUDADevices::FreeDataSpace(Device dev, void* ptr) {
  Enter(dev.device_id);
  if (dev.device_type == kDLCUDAHost) {
    Check(Functions().MemFreeHost(ptr), "cuMemFreeHost");
  } else {
    Check(Functions().MemFree(Address(ptr, 0)), "cuMemFree");
  }
}

TVMStreamHandle CUDADevices::CreateStream(Device dev) {
  Enter(dev.device_id);
  CUstream stream;
  Check(Functions().StreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  return stream;
}

void CUDADevices::FreeStream(Device dev, TVMStreamHandle stream) {
  if (stream == nullptr) return;
  Enter(dev.device_id);
  if (stream == current_stream) current_stream = nullptr;
  Check(Functions().StreamDestroy(static_cast<CUstream>(stream)), "cuStreamDestroy");
}

void CUDADevices::SetStream(Device, TVMStreamHandle stream) { current_stream = static_cast<CUstream>(stream); }

TVMStreamHandle CUDADevices::GetCurrentStream(Device) { return current_stream; }

void CUDADevices::StreamSync(Device dev, TVMStreamHandle stream) {
  Enter(dev.device_id);
  CUstream waited = stream == nullptr ? current_stream : static_cast<CUstream>(stream);
  Check(Functions().StreamSynchronize(waited), "cuStreamSynchronize");
}

void CUDADevices::SyncStreamFromTo(Device dev, TVMStreamHandle src, TVMStreamHandle dst) {
  Enter(dev.device_id);
  CUevent event;
  Check(Functions().EventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  Check(Functions().EventRecord(event, static_cast<CUstream>(src)), "cuEventRecord");
  Check(Functions().StreamWaitEvent(static_cast<CUstream>(dst), event, 0), "cuStreamWaitEvent");
  Check(Functions().EventDestroy(event), "cuEventDestroy");
}

void CUDADevices::CopyDataFromTo(const void* from, size_t from_offset, void* to, size_t to_offset, size_t num_bytes,
                                 Device dev_from, Device dev_to, DLDataType, TVMStreamHandle stream) {
  if (num_bytes == 0) return;
  CUstream queue = stream == nullptr ? current_stream : static_cast<CUstream>(stream);
  CUdeviceptr source = Address(from, from_offset), target = Address(to, to_offset);
  bool is_from_host = IsHost(dev_from), is_to_host = IsHost(dev_to);
  Enter(is_from_host ? dev_to.device_id : dev_from.device_id);
  if (is_from_host && is_to_host) {
    std::copy_n(reinterpret_cast<const char*>(source), num_bytes, reinterpret_cast<char*>(target));
  } else if (is_from_host && dev_to.device_type == kDLCUDA) {
    // from memory that is not pinned, the driver has taken the bytes when it returns
    Check(Functions().MemcpyHtoDAsync(target, reinterpret_cast<const void*>(source), num_bytes, queue), "cuMemcpyHtoD");
    if (dev_from.device_type == kDLCUDAHost) Check(Functions().StreamSynchronize(queue), "cuStreamSynchronize");
  } else if (is_to_host && dev_from.device_type == kDLCUDA) {
    Check(Functions().MemcpyDtoHAsync(reinterpret_cast<void*>(target), source, num_bytes, queue), "cuMemcpyDtoH");
    Check(Functions().StreamSynchronize(queue), "cuStreamSynchronize");
  } else if (dev_from.device_type != kDLCUDA || dev_to.device_type != kDLCUDA) {
    ThrowError("CUDA cannot copy from ", DeviceText(dev_from), " to ", DeviceText(dev_to));
  } else if (dev_from.device_id == dev_to.device_id) {
    Check(Functions().MemcpyDtoDAsync(target, source, num_bytes, queue), "cuMemcpyDtoD");
  } else {
    Enter(dev_to.device_id);
    Enter(dev_from.device_id);
    Check(Functions().MemcpyPeerAsync(target, contexts_[dev_to.device_id], source, contexts_[dev_from.device_id], num_bytes, queue),
          "cuMemcpyPeer");
  }
}

TVM_REGISTER_GLOBAL("device_api.cuda").set_body([](TVMArgs, TVMRetValue* rv) {
  *rv = static_cast<void*>(static_cast<DeviceAPI*>(CUDADevices::Global()));
});
TVM_REGISTER_GLOBAL("device_api.cuda_host").set_body([](TVMArgs, TVMRetValue* rv) {
  *rv = static_cast<void*>(static_cast<DeviceAPI*>(CUDADevices::Global()));
});

}  // namespace cuda
}  // namespace runtime
}  // namespace tvm
