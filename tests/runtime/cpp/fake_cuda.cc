// A driver with one device whose memory is the host's and whose only kernel adds vectors: C[i] = A[i] + B[i].
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define API extern "C" __attribute__((visibility("default"))) int
using Address = uintptr_t;

API cuInit(unsigned) { return 0; }
API cuDriverGetVersion(int* version) { return *version = 12040, 0; }
API cuGetErrorName(int code, const char** name) { return *name = code == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR", 0; }
API cuDeviceGetCount(int* count) { return *count = 1, 0; }
API cuDeviceGet(int* device, int number) { return *device = number, 0; }
API cuDeviceGetName(char* name, int size, int) { return std::strncpy(name, "no device", size), 0; }
API cuDeviceGetAttribute(int* value, int which, int) { return *value = which == 75 ? 8 : which == 76 ? 6 : which, 0; }
API cuDeviceTotalMem_v2(size_t* bytes, int) { return *bytes = 1 << 30, 0; }
API cuDevicePrimaryCtxRetain(void** context, int) { return *context = malloc(1), 0; }
API cuCtxSetCurrent(void*) { return 0; }
API cuCtxSynchronize() { return 0; }
API cuMemGetInfo_v2(size_t* left, size_t* total) { return *left = 1 << 20, *total = 1 << 30, 0; }
API cuMemAlloc_v2(Address* address, size_t size) {
  if (size > (1 << 20)) return 2;
  return *address = reinterpret_cast<Address>(aligned_alloc(256, (size + 255) / 256 * 256)), 0;
}
API cuMemFree_v2(Address address) { return free(reinterpret_cast<void*>(address)), 0; }
API cuMemAllocHost_v2(void** address, size_t size) { return *address = malloc(size), 0; }
API cuMemFreeHost(void* address) { return free(address), 0; }
API cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t size, void*) {
  return std::memcpy(reinterpret_cast<void*>(to), from, size), 0;
}
API cuMemcpyDtoHAsync_v2(void* to, Address from, size_t size, void*) {
  return std::memcpy(to, reinterpret_cast<void*>(from), size), 0;
}
API cuMemcpyDtoDAsync_v2(Address to, Address from, size_t size, void*) {
  return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), size), 0;
}
API cuMemcpyPeerAsync(Address, void*, Address, void*, size_t, void*) { return 1; }
API cuStreamCreate(void** stream, unsigned) { return *stream = malloc(1), 0; }
API cuStreamDestroy_v2(void* stream) { return free(stream), 0; }
API cuStreamSynchronize(void*) { return 0; }
API cuStreamWaitEvent(void*, void*, unsigned) { return 0; }
API cuEventCreate(void** event, unsigned) { return *event = malloc(1), 0; }
API cuEventDestroy_v2(void* event) { return free(event), 0; }
API cuEventRecord(void*, void*) { return 0; }
API cuModuleLoadData(void** module, const void* image) {
  if (std::strstr(static_cast<const char*>(image), ".version") == nullptr) return 218;  // no PTX
  return *module = malloc(1), 0;
}
API cuModuleGetFunction(void** function, void*, const char* name) { return *function = strdup(name), 0; }
API cuFuncSetAttribute(void*, int, int) { return 0; }
API cuLaunchKernel(void* function, unsigned gx, unsigned, unsigned, unsigned bx, unsigned by, unsigned, unsigned, void*,
                   void** params, void**) {
  if (std::strcmp(static_cast<char*>(function), "add_kernel") != 0 || bx * by > 1024) return 1;
  auto array = [&](int index) { return *static_cast<float**>(params[index]); };
  auto count = *static_cast<int32_t*>(params[3]);
  float *c = array(0), *a = array(1), *b = array(2);
  for (int i = 0; i < count && i < static_cast<int>(gx * bx); ++i) c[i] = a[i] + b[i];
  return 0;
}
