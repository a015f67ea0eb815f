// Opens OpenCL's library.
#include "cl.h"

#include <dlfcn.h>
#include <tvm/runtime/error.h>

namespace tvm {
namespace runtime {
namespace opencl {
namespace {

template <class Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

const Api* Open() {
  void* library = nullptr;
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so", "/System/Library/Frameworks/OpenCL.framework/OpenCL"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) return nullptr;
  static Api api;
#define TVM_CL_FUNCTION(name) Find(library, "cl" #name, &api.name)
  bool is_whole =
      TVM_CL_FUNCTION(GetPlatformIDs) && TVM_CL_FUNCTION(GetDeviceIDs) && TVM_CL_FUNCTION(GetDeviceInfo) &&
      TVM_CL_FUNCTION(CreateContext) && TVM_CL_FUNCTION(CreateCommandQueue) && TVM_CL_FUNCTION(ReleaseCommandQueue) &&
      TVM_CL_FUNCTION(CreateBuffer) && TVM_CL_FUNCTION(CreateSubBuffer) && TVM_CL_FUNCTION(ReleaseMemObject) &&
      TVM_CL_FUNCTION(CreateProgramWithSource) && TVM_CL_FUNCTION(BuildProgram) && TVM_CL_FUNCTION(GetProgramBuildInfo) &&
      TVM_CL_FUNCTION(ReleaseProgram) && TVM_CL_FUNCTION(CreateKernel) && TVM_CL_FUNCTION(SetKernelArg) &&
      TVM_CL_FUNCTION(EnqueueNDRangeKernel) && TVM_CL_FUNCTION(EnqueueReadBuffer) && TVM_CL_FUNCTION(EnqueueWriteBuffer) &&
      TVM_CL_FUNCTION(EnqueueCopyBuffer) && TVM_CL_FUNCTION(Finish);
#undef TVM_CL_FUNCTION
  return is_whole ? &api : nullptr;
}

}  // namespace

const Api* FindApi() {
  static const Api* api = Open();
  return api;
}

std::string ErrorName(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case CL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
    case CL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
    case -11: return "CL_BUILD_PROGRAM_FAILURE";
    case -30: return "CL_INVALID_VALUE";
    case -38: return "CL_INVALID_MEM_OBJECT";
    case -46: return "CL_INVALID_KERNEL_NAME";
    case -51: return "CL_INVALID_ARG_SIZE";
    case -52: return "CL_INVALID_KERNEL_ARGS";
    case -54: return "CL_INVALID_WORK_GROUP_SIZE";
    case -55: return "CL_INVALID_WORK_ITEM_SIZE";
    case CL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
    default: return Cat("error ", code);
  }
}

void Check(cl_int code, const char* function) {
  if (code != CL_SUCCESS) ThrowError("OpenCL: ", function, " failed with ", ErrorName(code));
}

}  // namespace opencl
}  // namespace runtime
}  // namespace tvm
