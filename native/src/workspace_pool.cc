// Workspaces: best fit among the thread's free blocks, freed mostly in reverse order.
#include "workspace_pool.h"

#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/device_api.h>

#include <algorithm>
#include <cstdlib>

namespace tvm {
namespace runtime {

constexpr size_t kPageBytes = 4096;

WorkspacePool& WorkspacePool::ThreadLocal() {
  static thread_local WorkspacePool pool;
  return pool;
}

WorkspacePool::~WorkspacePool() {
  for (const Block& block : free_) free(block.data);
}

void* WorkspacePool::Alloc(size_t nbytes) {
  size_t size = std::max((nbytes + kPageBytes - 1) / kPageBytes, size_t{1}) * kPageBytes;
  auto fit = std::lower_bound(free_.begin(), free_.end(), size,
                              [](const Block& block, size_t wanted) { return block.size < wanted; });
  Block block;
  if (fit != free_.end()) {
    block = *fit;
    free_.erase(fit);
  } else {
    // a block too small for this request would only be kept in vain
    if (!free_.empty()) {
      free(free_.back().data);
      free_.pop_back();
    }
    block.size = size;
    if (posix_memalign(&block.data, kPageBytes, size) != 0) {
      ThrowError("out of memory: cannot allocate a workspace of ", nbytes, " bytes");
    }
  }
  used_.push_back(block);
  return block.data;
}

void WorkspacePool::Free(void* ptr) {
  auto it = std::find_if(used_.rbegin(), used_.rend(), [&](const Block& block) { return block.data == ptr; });
  if (it == used_.rend()) ThrowError("a workspace was freed that this thread did not allocate");
  Block block = *it;
  used_.erase(std::next(it).base());
  auto place = std::lower_bound(free_.begin(), free_.end(), block.size,
                                [](const Block& other, size_t size) { return other.size < size; });
  free_.insert(place, block);
}

}  // namespace runtime
}  // namespace tvm

using namespace tvm::runtime;

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                               int dtype_bits_hint) {
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  DLDataType hint{static_cast<uint8_t>(dtype_code_hint), static_cast<uint8_t>(dtype_bits_hint), 1};
  try {
    return DeviceAPI::Get(device)->AllocWorkspace(device, nbytes, hint);
  } catch (const std::exception& error) {
    SetLastError(error);
    return nullptr;
  }
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr) {
  TVM_API_BEGIN();
  DLDevice device{static_cast<DLDeviceType>(device_type), device_id};
  DeviceAPI::Get(device)->FreeWorkspace(device, ptr);
  TVM_API_END();
}
