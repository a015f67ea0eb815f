# The C interface of the native runtime.

cdef extern from "tvm/runtime/c_runtime_api.h" nogil:
    ctypedef enum:
        kTVMArgInt
        kTVMArgFloat
        kTVMOpaqueHandle
        kTVMNullptr
        kTVMDataType
        kDLDevice
        kTVMDLTensorHandle
        kTVMObjectHandle
        kTVMModuleHandle
        kTVMPackedFuncHandle
        kTVMStr
        kTVMBytes
        kTVMNDArrayHandle
        kTVMObjectRValueRefArg
        kTVMArgBool
        kDLUInt

    ctypedef enum DLDeviceType:
        kDLCPU

    ctypedef struct DLDataType:
        uint8_t code
        uint8_t bits
        uint16_t lanes

    ctypedef struct DLDevice:
        DLDeviceType device_type
        int32_t device_id

    ctypedef struct DLTensor:
        void* data
        DLDevice device
        int32_t ndim
        DLDataType dtype
        int64_t* shape
        int64_t* strides
        uint64_t byte_offset

    ctypedef struct DLManagedTensor:
        DLTensor dl_tensor
        void* manager_ctx
        void (*deleter)(DLManagedTensor*) noexcept

    ctypedef union TVMValue:
        int64_t v_int64
        double v_float64
        void* v_handle
        const char* v_str
        DLDataType v_type
        DLDevice v_device

    ctypedef struct TVMByteArray:
        const char* data
        size_t size

    ctypedef int (*TVMPackedCFunc)(TVMValue*, int*, int, void*, void*) noexcept
    ctypedef void (*TVMPackedCFuncFinalizer)(void*) noexcept nogil

    void TVMAPISetLastForeignError(const char* msg, void* error)
    const char* TVMGetLastError()
    void* TVMTakeLastForeignError()
    int TVMFuncCall(void* func, TVMValue* args, int* codes, int n, TVMValue* ret, int* ret_code)
    int TVMFuncCreateFromCFunc(TVMPackedCFunc func, void* resource, TVMPackedCFuncFinalizer fin, void** out)
    int TVMCFuncSetReturn(void* ret, TVMValue* value, int* code, int n)
    int TVMFuncRegisterGlobal(const char* name, void* f, int override)
    int TVMFuncGetGlobal(const char* name, void** out)
    int TVMFuncListGlobalNames(int* size, const char*** out)
    int TVMFuncRemoveGlobal(const char* name)
    int TVMModGetFunction(void* mod, const char* name, int query_imports, void** out)
    int TVMModImport(void* mod, void* dep)
    int TVMArrayAlloc(const int64_t* shape, int ndim, int code, int bits, int lanes, int dev_type, int dev_id,
                      DLTensor** out)
    int TVMArrayFree(DLTensor* handle)
    int TVMArrayRetain(DLTensor* handle)
    int TVMArrayCopyFromBytes(DLTensor* handle, void* data, size_t nbytes)
    int TVMArrayCopyToBytes(DLTensor* handle, void* data, size_t nbytes)
    int TVMArrayCopyFromTo(DLTensor* source, DLTensor* target, void* stream)
    int TVMArrayCreateView(DLTensor* handle, const int64_t* shape, int ndim, DLDataType dtype, uint64_t offset,
                           DLTensor** out)
    int TVMArrayFromDLPack(DLManagedTensor* source, DLTensor** out)
    int TVMArrayToDLPack(DLTensor* source, DLManagedTensor** out)
    void TVMDLManagedTensorCallDeleter(DLManagedTensor* tensor)
    int TVMObjectRetain(void* obj)
    int TVMObjectFree(void* obj)
    int TVMObjectWrapForeign(void* foreign, void (*fin)(void*) noexcept nogil, void** out)
    void* TVMObjectUnwrapForeign(void* obj, void (*fin)(void*) noexcept nogil)
    int TVMObjectSetForeignNamer(const char* (*type_name)(void*) noexcept)
    int TVMBackendRegisterEnvCAPI(const char* name, void* ptr)
    int TVMFuncGetName(void* func, const char** out)
    int TVMObjectTypeKey2Index(const char* type_key, unsigned* out)
    int TVMObjectTypeIndex2Key(unsigned index, char** out)
    int TVMObjectGetTypeIndex(void* obj, unsigned* out)
    int TVMStreamCreate(int device_type, int device_id, void** out)
    int TVMStreamFree(int device_type, int device_id, void* stream)
    int TVMSetStream(int device_type, int device_id, void* stream)
    int TVMSynchronize(int device_type, int device_id, void* stream)
