// Opens the library of CUDA's driver.
#include "driver.h"

#include <dlfcn.h>
#include <tvm/runtime/error.h>

namespace tvm {
namespace runtime {
namespace cuda {
namespace {

template <class Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

const Driver* Open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  static Driver driver;
#define TVM_CUDA_FUNCTION(field, name) Find(library, "cu" name, &driver.field)
  bool is_whole =
      TVM_CUDA_FUNCTION(Init, "Init") && TVM_CUDA_FUNCTION(DriverGetVersion, "DriverGetVersion") &&
      TVM_CUDA_FUNCTION(GetErrorName, "GetErrorName") && TVM_CUDA_FUNCTION(DeviceGetCount, "DeviceGetCount") &&
      TVM_CUDA_FUNCTION(DeviceGet, "DeviceGet") && TVM_CUDA_FUNCTION(DeviceGetName, "DeviceGetName") &&
      TVM_CUDA_FUNCTION(DeviceGetAttribute, "DeviceGetAttribute") && TVM_CUDA_FUNCTION(DeviceTotalMem, "DeviceTotalMem_v2") &&
      TVM_CUDA_FUNCTION(DevicePrimaryCtxRetain, "DevicePrimaryCtxRetain") &&
      TVM_CUDA_FUNCTION(CtxSetCurrent, "CtxSetCurrent") && TVM_CUDA_FUNCTION(CtxSynchronize, "CtxSynchronize") &&
      TVM_CUDA_FUNCTION(MemGetInfo, "MemGetInfo_v2") && TVM_CUDA_FUNCTION(MemAlloc, "MemAlloc_v2") &&
      TVM_CUDA_FUNCTION(MemFree, "MemFree_v2") && TVM_CUDA_FUNCTION(MemAllocHost, "MemAllocHost_v2") &&
      TVM_CUDA_FUNCTION(MemFreeHost, "MemFreeHost") && TVM_CUDA_FUNCTION(MemcpyHtoDAsync, "MemcpyHtoDAsync_v2") &&
      TVM_CUDA_FUNCTION(MemcpyDtoHAsync, "MemcpyDtoHAsync_v2") && TVM_CUDA_FUNCTION(MemcpyDtoDAsync, "MemcpyDtoDAsync_v2") &&
      TVM_CUDA_FUNCTION(MemcpyPeerAsync, "MemcpyPeerAsync") && TVM_CUDA_FUNCTION(StreamCreate, "StreamCreate") &&
      TVM_CUDA_FUNCTION(StreamDestroy, "StreamDestroy_v2") && TVM_CUDA_FUNCTION(StreamSynchronize, "StreamSynchronize") &&
      TVM_CUDA_FUNCTION(StreamWaitEvent, "StreamWaitEvent") && TVM_CUDA_FUNCTION(EventCreate, "EventCreate") &&
      TVM_CUDA_FUNCTION(EventDestroy, "EventDestroy_v2") && TVM_CUDA_FUNCTION(EventRecord, "EventRecord") &&
      TVM_CUDA_FUNCTION(ModuleLoadData, "ModuleLoadData") && TVM_CUDA_FUNCTION(ModuleGetFunction, "ModuleGetFunction") &&
      TVM_CUDA_FUNCTION(FuncSetAttribute, "FuncSetAttribute") && TVM_CUDA_FUNCTION(LaunchKernel, "LaunchKernel");
#undef TVM_CUDA_FUNCTION
  return is_whole ? &driver : nullptr;
}

}  // namespace

const Driver* FindDriver() {
  static const Driver* driver = Open();
  return driver;
}

const char* ErrorName(CUresult code) {
  const char* name = nullptr;
  bool is_known = FindDriver()->GetErrorName(code, &name) == CUDA_SUCCESS && name != nullptr;
  return is_known ? name : "an unknown error";
}

void Check(CUresult code, const char* function) {
  if (code != CUDA_SUCCESS) ThrowError("CUDA: ", function, " failed with ", ErrorName(code), " (", code, ")");
}

}  // namespace cuda
}  // namespace runtime
}  // namespace tvm
