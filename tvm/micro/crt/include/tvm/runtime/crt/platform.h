/* What the C runtime asks of the program around it. The runtime brings weak definitions over malloc and abort. */
#ifndef TVM_RUNTIME_CRT_PLATFORM_H_
#define TVM_RUNTIME_CRT_PLATFORM_H_

#include <stddef.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Memory at a multiple of 64 bytes; what is allocated last is freed first. */
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t num_bytes, DLDevice dev, void** out_ptr);
tvm_crt_error_t TVMPlatformMemoryFree(void* ptr, DLDevice dev);
/* Called where the program cannot go on. */
void TVMPlatformAbort(tvm_crt_error_t code);

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_CRT_PLATFORM_H_ */
