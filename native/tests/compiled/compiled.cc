// A library of packed functions as compilers write them: addresses come through slots, no runtime is linked.
#include <tvm/runtime/c_backend_api.h>
#include <tvm/runtime/metadata_types.h>

#define ARGS TVMValue *args, int *codes, int n, TVMValue *ret, int *ret_code, void *

extern "C" {

void* __tvm_module_ctx = nullptr;
decltype(TVMFuncCall)* __TVMFuncCall = nullptr;
decltype(TVMAPISetLastError)* __TVMAPISetLastError = nullptr;
decltype(TVMBackendGetFuncFromEnv)* __TVMBackendGetFuncFromEnv = nullptr;
decltype(TVMBackendAllocWorkspace)* __TVMBackendAllocWorkspace = nullptr;
decltype(TVMBackendFreeWorkspace)* __TVMBackendFreeWorkspace = nullptr;
decltype(TVMBackendParallelLaunch)* __TVMBackendParallelLaunch = nullptr;
decltype(TVMBackendParallelBarrier)* __TVMBackendParallelBarrier = nullptr;
extern const char __tvm_main__[];
const char __tvm_main__[] = "add";
}

namespace {

struct Sum {
  const float* left;
  const float* right;
  float* out;
  int64_t count;
};

float* Data(TVMValue value) {
  auto* tensor = static_cast<DLTensor*>(value.v_handle);
  return reinterpret_cast<float*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
}

int64_t Count(TVMValue value) {
  auto* tensor = static_cast<DLTensor*>(value.v_handle);
  int64_t count = 1;
  for (int i = 0; i < tensor->ndim; ++i) count *= tensor->shape[i];
  return count;
}

int AddPart(int task, TVMParallelGroupEnv* env, void* data) {
  auto* sum = static_cast<Sum*>(data);
  int64_t step = (sum->count + env->num_task - 1) / env->num_task;
  for (int64_t i = task * step; i < (task + 1) * step && i < sum->count; ++i) {
    sum->out[i] = sum->left[i] + sum->right[i];
  }
  return 0;
}

}  // namespace

extern "C" {

int add(ARGS) {
  Sum sum{Data(args[0]), Data(args[1]), Data(args[2]), Count(args[0])};
  return __TVMBackendParallelLaunch(AddPart, &sum, 0);
}

// through a workspace
int negate(ARGS) {
  int64_t count = Count(args[0]);
  auto* copy = static_cast<float*>(__TVMBackendAllocWorkspace(1, 0, count * sizeof(float), 2, 32));
  if (copy == nullptr) return -1;
  for (int64_t i = 0; i < count; ++i) copy[i] = -Data(args[0])[i];
  for (int64_t i = 0; i < count; ++i) Data(args[1])[i] = copy[i];
  return __TVMBackendFreeWorkspace(1, 0, copy);
}

int fail(ARGS) {
  __TVMAPISetLastError("TypeError: fail: argument 0 needs dtype float32, got int32");
  return -1;
}

int call_from_env(ARGS) {
  void* func = nullptr;
  if (__TVMBackendGetFuncFromEnv(__tvm_module_ctx, "tests.from_env", &func) != 0) return -1;
  return __TVMFuncCall(func, args, codes, n, ret, ret_code);
}

// a model for the AOT executor: out = -(x + constant), with a pool of constants and one of workspace
int tvmgen_sum___tvm_main__(ARGS) {
  TVMValue sum[3] = {args[0], args[2], args[3]};
  TVMValue result[2] = {args[3], args[1]};
  if (n != 4 || add(sum, codes, 3, ret, ret_code, nullptr) != 0) return -1;
  return negate(result, codes, 2, ret, ret_code, nullptr);
}

int get_c_metadata(ARGS) {
  static const int64_t shape[] = {4};
  static const DLDataType float32 = {kDLFloat, 32, 1};
  static const TVMTensorInfo inputs[] = {{"x", shape, 1, float32}};
  static const TVMTensorInfo outputs[] = {{"output", shape, 1, float32}};
  static const TVMTensorInfo pools[] = {{"workspace", shape, 1, float32}};
  // as parameter files have arrays: magic, reserved, device, dimensions, type, extents, bytes, data
  static const struct __attribute__((packed)) {
    uint64_t magic, reserved;
    int32_t device_type, device_id, ndim;
    DLDataType dtype;
    int64_t extent, bytes;
    float data[4];
  } constant = {0xDD5E40F096B4A13F, 0, 1, 0, 1, {kDLFloat, 32, 1}, 4, 16, {1, 2, 3, 4}};
  static const TVMConstantInfo constants[] = {{"constant", 0, sizeof(constant), &constant}};
  static const TVMMetadata metadata = {TVM_METADATA_VERSION, inputs, 1, outputs, 1, pools, 1, constants, 1, "sum"};
  ret->v_handle = const_cast<TVMMetadata*>(&metadata);
  *ret_code = kTVMOpaqueHandle;
  return 0;
}

}  // extern "C"
