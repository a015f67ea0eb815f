#include <tvm/runtime/crt/stack_allocator.h>

#define ALIGNMENT ((uintptr_t)TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES)

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t* tvm_runtime_workspace, uint8_t* g_aot_memory,
                                        size_t workspace_size) {
  uintptr_t misaligned = (uintptr_t)g_aot_memory % ALIGNMENT;
  size_t skipped = misaligned ? ALIGNMENT - misaligned : 0;
  if (workspace_size < skipped) return kTvmErrorPlatformNoMemory;
  tvm_runtime_workspace->workspace = g_aot_memory + skipped;
  tvm_runtime_workspace->next_alloc = tvm_runtime_workspace->workspace;
  tvm_runtime_workspace->workspace_size = workspace_size - skipped;
  return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t* tvm_runtime_workspace, int32_t nbytes,
                                            void** current_alloc) {
  size_t used = (size_t)(tvm_runtime_workspace->next_alloc - tvm_runtime_workspace->workspace);
  size_t size = ((size_t)nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  *current_alloc = NULL;
  if (nbytes < 0 || size > tvm_runtime_workspace->workspace_size - used) return kTvmErrorPlatformNoMemory;
  *current_alloc = tvm_runtime_workspace->next_alloc;
  tvm_runtime_workspace->next_alloc += size;
  return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t* tvm_runtime_workspace, void* ptr) {
  uint8_t* first = (uint8_t*)ptr;
  if (first < tvm_runtime_workspace->workspace || first > tvm_runtime_workspace->next_alloc) {
    return kTvmErrorPlatformCheckFailure;
  }
  tvm_runtime_workspace->next_alloc = first;
  return kTvmErrorNoError;
}
