/* What functions of the C runtime return. */
#ifndef TVM_RUNTIME_CRT_ERROR_CODES_H_
#define TVM_RUNTIME_CRT_ERROR_CODES_H_

typedef enum {
  kTvmErrorNoError = 0,
  kTvmErrorPlatformNoMemory = 0x8800,
  kTvmErrorPlatformCheckFailure = 0x8801,
  kTvmErrorFunctionNameNotFound = 0x8100,
} tvm_crt_error_t;

#endif /* TVM_RUNTIME_CRT_ERROR_CODES_H_ */
