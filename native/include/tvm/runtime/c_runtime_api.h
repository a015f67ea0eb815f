/* The C interface of the runtime: everything that crosses a library boundary.
 *
 * A packed C function receives arrays of values and of type codes. Entry points return 0, or -1 after
 * they have set an error that TVMGetLastError tells.
 */
#ifndef TVM_RUNTIME_C_RUNTIME_API_H_
#define TVM_RUNTIME_C_RUNTIME_API_H_

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#ifndef TVM_WEAK
#define TVM_WEAK __attribute__((weak))
#endif
#ifndef TVM_DLL
#define TVM_DLL __attribute__((visibility("default")))
#endif

#define TVM_VERSION "0.18.0"

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t tvm_index_t;

/* The first codes are those of DLDataTypeCode; compiled code depends on every number here. */
typedef enum {
  kTVMArgInt = 0,
  kTVMArgFloat = 2,
  kTVMOpaqueHandle = 3,
  kTVMNullptr = 4,
  kTVMDataType = 5,
  kDLDevice = 6,
  kTVMDLTensorHandle = 7,
  kTVMObjectHandle = 8,
  kTVMModuleHandle = 9,
  kTVMPackedFuncHandle = 10,
  kTVMStr = 11,
  kTVMBytes = 12,
  kTVMNDArrayHandle = 13,
  kTVMObjectRValueRefArg = 14,
  kTVMArgBool = 15,
} TVMArgTypeCode;

/* Kinds of devices beside those of DLDeviceType. */
typedef enum {
  kDLAOCL = 32,
  kDLSDAccel = 33,
  kOpenGL = 34,
  kDLMicroDev = 35,
} TVMDeviceExtType;

typedef union {
  int64_t v_int64;
  double v_float64;
  void* v_handle;
  const char* v_str;
  DLDataType v_type;
  DLDevice v_device;
} TVMValue;

typedef struct {
  const char* data;
  size_t size;
} TVMByteArray;

typedef DLTensor* TVMArrayHandle;
typedef void* TVMModuleHandle;
typedef void* TVMFunctionHandle;
typedef void* TVMRetValueHandle;
typedef void* TVMObjectHandle;
typedef void* TVMStreamHandle;

typedef int (*TVMPackedCFunc)(TVMValue* args, int* type_codes, int num_args, TVMRetValueHandle ret,
                              void* resource_handle);
typedef void (*TVMPackedCFuncFinalizer)(void* resource_handle);

/* Errors. The text starts with the class, "ValueError: ..."; a foreign error is an object that another
 * language threw (here: a Python exception), which travels unchanged to whoever catches it. */
TVM_DLL void TVMAPISetLastError(const char* msg);
TVM_DLL const char* TVMGetLastError(void);
TVM_DLL void TVMAPISetLastForeignError(const char* msg, TVMObjectHandle error);
TVM_DLL TVMObjectHandle TVMTakeLastForeignError(void);

/* The same for a Python exception, as a PyObject*: the runtime takes a reference of its own. NULL if the last
 * error is none; the result is borrowed until the thread's next error. */
TVM_DLL void TVMAPISetLastPythonError(void* py_object);
TVM_DLL void* TVMGetLastPythonError(void);
TVM_DLL void TVMDropLastPythonError(void);
/* Where the last error was raised, as far as its text tells ("file.cc:12"); NULL if it does not. */
TVM_DLL const char* TVMGetLastBacktrace(void);
/* Throws the last error as a C++ exception. */
TVM_DLL void TVMThrowLastError(void);

/* Modules. */
TVM_DLL int TVMModLoadFromFile(const char* file_name, const char* format, TVMModuleHandle* out);
TVM_DLL int TVMModImport(TVMModuleHandle mod, TVMModuleHandle dep);
TVM_DLL int TVMModGetFunction(TVMModuleHandle mod, const char* func_name, int query_imports,
                              TVMFunctionHandle* out);
TVM_DLL int TVMModFree(TVMModuleHandle mod);

/* Functions. */
TVM_DLL int TVMFuncFree(TVMFunctionHandle func);
TVM_DLL int TVMFuncCall(TVMFunctionHandle func, TVMValue* arg_values, int* type_codes, int num_args,
                        TVMValue* ret_val, int* ret_type_code);
/* The name the function is registered under, "" if it is not; valid as long as the function. */
TVM_DLL int TVMFuncGetName(TVMFunctionHandle func, const char** out);
TVM_DLL int TVMCFuncSetReturn(TVMRetValueHandle ret, TVMValue* value, int* type_code, int num_ret);
TVM_DLL int TVMCbArgToReturn(TVMValue* value, int* code);
TVM_DLL int TVMFuncCreateFromCFunc(TVMPackedCFunc func, void* resource_handle,
                                   TVMPackedCFuncFinalizer fin, TVMFunctionHandle* out);
TVM_DLL int TVMFuncRegisterGlobal(const char* name, TVMFunctionHandle f, int override);
TVM_DLL int TVMFuncGetGlobal(const char* name, TVMFunctionHandle* out);
TVM_DLL int TVMFuncListGlobalNames(int* out_size, const char*** out_array);
TVM_DLL int TVMFuncRemoveGlobal(const char* name);

/* Arrays. */
TVM_DLL int TVMArrayAlloc(const tvm_index_t* shape, int ndim, int dtype_code, int dtype_bits,
                          int dtype_lanes, int device_type, int device_id, TVMArrayHandle* out);
TVM_DLL int TVMArrayFree(TVMArrayHandle handle);
TVM_DLL int TVMArrayRetain(TVMArrayHandle handle);
TVM_DLL int TVMArrayCopyFromBytes(TVMArrayHandle handle, void* data, size_t nbytes);
TVM_DLL int TVMArrayCopyToBytes(TVMArrayHandle handle, void* data, size_t nbytes);
TVM_DLL int TVMArrayCopyFromTo(TVMArrayHandle from, TVMArrayHandle to, TVMStreamHandle stream);
TVM_DLL int TVMArrayCreateView(TVMArrayHandle handle, const tvm_index_t* shape, int ndim,
                               DLDataType dtype, uint64_t relative_byte_offset, TVMArrayHandle* out);
TVM_DLL int TVMArrayFromDLPack(DLManagedTensor* from, TVMArrayHandle* out);
TVM_DLL int TVMArrayToDLPack(TVMArrayHandle from, DLManagedTensor** out);
TVM_DLL void TVMDLManagedTensorCallDeleter(DLManagedTensor* dltensor);

/* Devices. */
TVM_DLL int TVMStreamCreate(int device_type, int device_id, TVMStreamHandle* out);
TVM_DLL int TVMStreamFree(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMSetStream(int device_type, int device_id, TVMStreamHandle handle);
TVM_DLL int TVMSynchronize(int device_type, int device_id, TVMStreamHandle stream);
TVM_DLL int TVMStreamStreamSynchronize(int device_type, int device_id, TVMStreamHandle src,
                                       TVMStreamHandle dst);
TVM_DLL int TVMDeviceAllocDataSpace(DLDevice dev, size_t nbytes, size_t alignment,
                                    DLDataType type_hint, void** out_data);
TVM_DLL int TVMDeviceAllocDataSpaceWithScope(DLDevice dev, int ndim, const int64_t* shape, DLDataType dtype,
                                             const char* mem_scope, void** out_data);
TVM_DLL int TVMDeviceFreeDataSpace(DLDevice dev, void* ptr);
TVM_DLL int TVMDeviceCopyDataFromTo(DLTensor* from, DLTensor* to, TVMStreamHandle stream);

/* Objects. */
TVM_DLL int TVMObjectGetTypeIndex(TVMObjectHandle obj, unsigned* out_tindex);
TVM_DLL int TVMObjectTypeKey2Index(const char* type_key, unsigned* out_tindex);
TVM_DLL int TVMObjectTypeIndex2Key(unsigned tindex, char** out_type_key);
/* Whether the kind of the first index is the second one or below it. */
TVM_DLL int TVMObjectDerivedFrom(uint32_t child_type_index, uint32_t parent_type_index, int* is_derived);
TVM_DLL int TVMObjectRetain(TVMObjectHandle obj);
TVM_DLL int TVMObjectFree(TVMObjectHandle obj);
TVM_DLL int TVMByteArrayFree(TVMByteArray* arr);
/* An object of another language, carried through native code; `fin` runs with the last reference. */
TVM_DLL int TVMObjectWrapForeign(void* foreign, void (*fin)(void*), TVMObjectHandle* out);
/* Gives native code a function of the surrounding language. "PyErr_CheckSignals": int(void), nonzero after
 * it has set an error, which a signal handler raised. "Py_IncRef", "Py_DecRef": void(void*), callable by any thread. */
TVM_DLL int TVMBackendRegisterEnvCAPI(const char* name, void* ptr);
/* Tells how error messages learn the type of a wrapped object, in its own language's words. */
TVM_DLL int TVMObjectSetForeignNamer(const char* (*type_name)(void*));
/* The wrapped pointer, or NULL if `obj` does not wrap a foreign object with this finalizer. */
TVM_DLL void* TVMObjectUnwrapForeign(TVMObjectHandle obj, void (*fin)(void*));

#ifdef __cplusplus
}
#endif
#endif /* TVM_RUNTIME_C_RUNTIME_API_H_ */
