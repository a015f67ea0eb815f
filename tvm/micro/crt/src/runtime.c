/* The functions that compiled code calls, for programs without the C++ runtime: one thread, memory of the platform. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/crt/platform.h>

#ifndef TVM_CRT_MAX_SYMBOLS
#define TVM_CRT_MAX_SYMBOLS 1024
#endif
#define ALIGNMENT 64
#define WEAK __attribute__((weak))

static char last_error[1024];

const char* TVMGetLastError(void) { return last_error; }

void TVMAPISetLastError(const char* message) {
  strncpy(last_error, message, sizeof(last_error) - 1);
  last_error[sizeof(last_error) - 1] = '\0';
}

/* ---- the platform, unless the program defines it */

WEAK tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr) {
  /* the block's own address stands in front of the aligned memory */
  char* block = (char*)malloc(num_bytes + ALIGNMENT + sizeof(void*));
  (void)dev;
  *out_ptr = NULL;
  if (block == NULL) return kTvmErrorPlatformNoMemory;
  uintptr_t first = ((uintptr_t)block + sizeof(void*) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  ((void**)first)[-1] = block;
  *out_ptr = (void*)first;
  return kTvmErrorNoError;
}

WEAK tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev) {
  (void)dev;
  free(((void**)ptr)[-1]);
  return kTvmErrorNoError;
}

WEAK void TVMPlatformAbort(tvm_crt_error_t code) {
  fprintf(stderr, "TVM: error 0x%x: %s\n", (unsigned)code, last_error);
  abort();
}

/* ---- workspaces */

void* TVMBackendAllocWorkspace(int device_type, int device_id, uint64_t nbytes, int dtype_code_hint,
                               int dtype_bits_hint) {
  DLDevice device = {(DLDeviceType)device_type, device_id};
  void* memory = NULL;
  (void)dtype_code_hint;
  (void)dtype_bits_hint;
  if (TVMPlatformMemoryAllocate((size_t)nbytes, device, &memory) != kTvmErrorNoError) {
    TVMAPISetLastError("TVMError: out of memory for a workspace");
    return NULL;
  }
  return memory;
}

int TVMBackendFreeWorkspace(int device_type, int device_id, void* ptr) {
  DLDevice device = {(DLDeviceType)device_type, device_id};
  return TVMPlatformMemoryFree(ptr, device) == kTvmErrorNoError ? 0 : -1;
}

/* ---- parallel loops, one task behind the other */

int TVMBackendParallelLaunch(FTVMParallelLambda flambda, void* cdata, int num_task) {
  TVMParallelGroupEnv env = {NULL, 1};
  (void)num_task;
  return flambda(0, &env, cdata);
}

int TVMBackendParallelBarrier(int task_id, TVMParallelGroupEnv* penv) {
  (void)task_id;
  (void)penv;
  return 0;
}

/* ---- functions that are found by name */

static struct {
  const char* name;
  void* address;
} symbols[TVM_CRT_MAX_SYMBOLS];
static int num_symbols;

int TVMBackendRegisterSystemLibSymbol(const char* name, void* ptr) {
  if (num_symbols == TVM_CRT_MAX_SYMBOLS) {
    TVMAPISetLastError("TVMError: too many functions: compile the runtime with a larger TVM_CRT_MAX_SYMBOLS");
    TVMPlatformAbort(kTvmErrorPlatformCheckFailure);
    return -1;
  }
  symbols[num_symbols].name = name;
  symbols[num_symbols].address = ptr;
  ++num_symbols;
  return 0;
}

int TVMBackendGetFuncFromEnv(void* mod_node, const char* func_name, TVMFunctionHandle* out) {
  (void)mod_node;
  for (int i = 0; i < num_symbols; ++i) {
    if (strcmp(symbols[i].name, func_name) == 0) {
      *out = (TVMFunctionHandle)symbols[i].address;
      return 0;
    }
  }
  snprintf(last_error, sizeof(last_error), "ValueError: no function is called %s", func_name);
  return -1;
}

/* A handle is the function's address. */
int TVMFuncCall(TVMFunctionHandle func, TVMValue* arg_values, int* type_codes, int num_args, TVMValue* ret_val,
                int* ret_type_code) {
  return ((TVMBackendPackedCFunc)func)(arg_values, type_codes, num_args, ret_val, ret_type_code, NULL);
}
