"""The binding of the native runtime: values across the language border, packed calls, errors."""
# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=True

import ctypes
import numbers

from cpython.bytes cimport PyBytes_AsStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from tvm.support.dtype import DType, dtype_from_code


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
    ctypedef void (*TVMPackedCFuncFinalizer)(void*) noexcept

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
    int TVMObjectWrapForeign(void* foreign, void (*fin)(void*) noexcept, void** out)
    void* TVMObjectUnwrapForeign(void* obj, void (*fin)(void*) noexcept)
    int TVMObjectGetTypeIndex(void* obj, unsigned* out)
    int TVMSynchronize(int device_type, int device_id, void* stream)


# ---------------------------------------------------------------- the Python classes of native values

cdef object _ndarray_class = None
cdef object _func_class = None
cdef object _module_class = None
cdef object _device_class = None
cdef object _error_from_text = None
cdef object _object_class = ()
cdef object _numpy_bool = ()


def set_classes(*, object=None, ndarray=None, func=None, module=None, device=None, error=None,
                numpy_bool=None):
    """Tell which Python classes stand for native values; `error` makes an exception of a message."""
    global _object_class, _ndarray_class, _func_class, _module_class, _device_class, _error_from_text, _numpy_bool
    _object_class = object or _object_class
    _ndarray_class = ndarray or _ndarray_class
    _func_class = func or _func_class
    _module_class = module or _module_class
    _device_class = device or _device_class
    _error_from_text = error or _error_from_text
    _numpy_bool = numpy_bool or _numpy_bool


# ---------------------------------------------------------------- errors

cdef int raise_last_error() except -1:
    cdef void* foreign = TVMTakeLastForeignError()
    cdef void* exception
    cdef object error
    if foreign != NULL:
        exception = TVMObjectUnwrapForeign(foreign, drop_python_reference)
        if exception != NULL:
            error = <object>exception
            TVMObjectFree(foreign)
            raise error
        TVMObjectFree(foreign)
    raise _error_from_text((<bytes>TVMGetLastError()).decode("utf-8", "replace"))


cdef inline int check(int rc) except -1:
    if rc != 0:
        raise_last_error()
    return 0


cdef void drop_python_reference(void* obj) noexcept with gil:
    Py_DECREF(<object>obj)


cdef void* wrap_python(object value) except NULL:
    """A native object that holds `value`; the caller owns the reference."""
    cdef void* handle
    Py_INCREF(value)
    TVMObjectWrapForeign(<void*>value, drop_python_reference, &handle)
    return handle


cdef int set_python_error(object error) noexcept:
    cdef void* handle
    try:
        text = f"{type(error).__name__}: {error}".encode("utf-8", "replace")
    except Exception:
        text = type(error).__name__.encode()
    handle = wrap_python(error)
    TVMAPISetLastForeignError(text, handle)
    TVMObjectFree(handle)
    return -1


# ---------------------------------------------------------------- devices

cdef class DeviceBase:
    """A device: its kind and its number."""

    cdef DLDevice device

    def __init__(self, int device_type, int device_id=0):
        self.device.device_type = <DLDeviceType>device_type
        self.device.device_id = device_id

    @property
    def device_type(self):
        return <int>self.device.device_type

    @property
    def device_id(self):
        return self.device.device_id

    @device_id.setter
    def device_id(self, int value):
        self.device.device_id = value

    def __eq__(self, other):
        if not isinstance(other, DeviceBase):
            return NotImplemented
        return (self.device.device_type == (<DeviceBase>other).device.device_type
                and self.device.device_id == (<DeviceBase>other).device.device_id)

    def __hash__(self):
        return hash((<int>self.device.device_type, self.device.device_id))

    def __reduce__(self):
        return type(self), (<int>self.device.device_type, self.device.device_id)


def synchronize(DeviceBase device not None):
    """Wait for all work on the device."""
    cdef int rc
    with nogil:
        rc = TVMSynchronize(<int>device.device.device_type, device.device.device_id, NULL)
    check(rc)


cdef object make_device(DLDevice device):
    return _device_class(<int>device.device_type, device.device_id)


# ---------------------------------------------------------------- arguments and results

cdef DLDataType dtype_of(object dtype) except *:
    cdef DLDataType result
    result.code = dtype.type_code
    result.bits = dtype.bits
    result.lanes = dtype.lanes
    return result


cdef object make_dtype(DLDataType dtype):
    return dtype_from_code(dtype.code, dtype.bits, dtype.lanes)


cdef class BytesArgument:
    """Keeps the view of a bytes argument for the duration of a call."""

    cdef TVMByteArray view
    cdef object data


cdef class OwnedHandle:
    """Keeps a native object that was made for a call."""

    cdef void* handle

    def __dealloc__(self):
        TVMObjectFree(self.handle)


cdef inline OwnedHandle own(void* handle):
    cdef OwnedHandle owned = OwnedHandle.__new__(OwnedHandle)
    owned.handle = handle
    return owned


cdef inline int set_argument(object arg, TVMValue* value, int* code, list kept) except -1:
    if isinstance(arg, NDArrayBase):
        value.v_handle = (<NDArrayBase>arg).tensor
        code[0] = kTVMDLTensorHandle if (<NDArrayBase>arg).borrowed else kTVMNDArrayHandle
    elif type(arg) is int:
        value.v_int64 = arg
        code[0] = kTVMArgInt
    elif type(arg) is float:
        value.v_float64 = arg
        code[0] = kTVMArgFloat
    elif arg is None:
        value.v_handle = NULL
        code[0] = kTVMNullptr
    else:
        set_rare_argument(arg, value, code, kept)
    return 0


cdef int set_rare_argument(object arg, TVMValue* value, int* code, list kept) except -1:
    cdef BytesArgument bytes_argument
    cdef Py_ssize_t size
    cdef char* data
    if isinstance(arg, str):
        if type(arg) is DType:
            value.v_type = dtype_of(arg)
            code[0] = kTVMDataType
            return 0
        encoded = arg.encode()
        kept.append(encoded)
        value.v_str = encoded
        code[0] = kTVMStr
    elif isinstance(arg, bool):
        value.v_int64 = arg
        code[0] = kTVMArgBool
    elif isinstance(arg, PackedFuncBase):
        value.v_handle = (<PackedFuncBase>arg).func
        code[0] = kTVMPackedFuncHandle
    elif isinstance(arg, ModuleBase):
        value.v_handle = (<ModuleBase>arg).module
        code[0] = kTVMModuleHandle
    elif isinstance(arg, DeviceBase):
        value.v_device = (<DeviceBase>arg).device
        code[0] = kDLDevice
    elif isinstance(arg, (bytes, bytearray)):
        bytes_argument = BytesArgument.__new__(BytesArgument)
        bytes_argument.data = arg if isinstance(arg, bytes) else bytes(arg)
        PyBytes_AsStringAndSize(bytes_argument.data, &data, &size)
        bytes_argument.view.data = data
        bytes_argument.view.size = size
        kept.append(bytes_argument)
        value.v_handle = &bytes_argument.view
        code[0] = kTVMBytes
    elif isinstance(arg, NativeObject):
        value.v_handle = (<NativeObject>arg).native
        code[0] = kTVMObjectHandle
    elif isinstance(arg, _object_class):
        set_python_object(arg, value, code, kept)
    elif isinstance(arg, ctypes.c_void_p):
        value.v_handle = <void*><uintptr_t>(arg.value or 0)
        code[0] = kTVMOpaqueHandle
    elif isinstance(arg, numbers.Integral):
        value.v_int64 = int(arg)
        code[0] = kTVMArgInt
    elif isinstance(arg, numbers.Real):
        value.v_float64 = float(arg)
        code[0] = kTVMArgFloat
    elif isinstance(arg, _numpy_bool):
        value.v_int64 = bool(arg)
        code[0] = kTVMArgBool
    elif hasattr(arg, "_tvm_ffi_argument_"):
        replacement = arg._tvm_ffi_argument_()
        kept.append(replacement)
        set_argument(replacement, value, code, kept)
    elif callable(arg) and not isinstance(arg, type):
        func = make_function(arg)
        kept.append(func)
        value.v_handle = (<PackedFuncBase>func).func
        code[0] = kTVMPackedFuncHandle
    else:
        set_python_object(arg, value, code, kept)
    return 0


cdef int set_python_object(object arg, TVMValue* value, int* code, list kept) except -1:
    value.v_handle = wrap_python(arg)
    code[0] = kTVMObjectHandle
    kept.append(own(value.v_handle))
    return 0


cdef object take_result(TVMValue value, int code):
    """The Python value of a result, whose reference we take over."""
    if code == kTVMNullptr:
        return None
    if code == kTVMArgInt or code == kDLUInt:
        return value.v_int64
    if code == kTVMArgFloat:
        return value.v_float64
    if code == kTVMArgBool:
        return value.v_int64 != 0
    if code == kTVMNDArrayHandle:
        return make_ndarray(<DLTensor*>value.v_handle, False)
    if code == kTVMStr:
        return (<bytes>value.v_str).decode("utf-8", "surrogateescape")
    if code == kTVMBytes:
        return bytearray((<TVMByteArray*>value.v_handle).data[:(<TVMByteArray*>value.v_handle).size])
    if code == kTVMPackedFuncHandle:
        return make_func(value.v_handle)
    if code == kTVMModuleHandle:
        return make_module(value.v_handle)
    if code == kTVMObjectHandle:
        return make_object(value.v_handle)
    if code == kDLDevice:
        return make_device(value.v_device)
    if code == kTVMDataType:
        return make_dtype(value.v_type)
    if code == kTVMOpaqueHandle:
        return ctypes.c_void_p(<uintptr_t>value.v_handle)
    if code == kTVMDLTensorHandle:
        return make_ndarray(<DLTensor*>value.v_handle, True)
    raise TypeError(f"a packed function returned a value of unknown type code {code}")


cdef object borrow_argument(TVMValue value, int code):
    """The Python value of an argument, which belongs to the caller."""
    if code == kTVMNDArrayHandle:
        TVMArrayRetain(<DLTensor*>value.v_handle)
    elif code in (kTVMPackedFuncHandle, kTVMModuleHandle, kTVMObjectHandle):
        TVMObjectRetain(value.v_handle)
    elif code == kTVMObjectRValueRefArg:
        value.v_handle = (<void**>value.v_handle)[0]
        TVMObjectRetain(value.v_handle)
        code = kTVMObjectHandle
    return take_result(value, code)


cdef class NativeObject:
    """An object of the native runtime that has no Python class of its own."""

    cdef void* native

    def __dealloc__(self):
        TVMObjectFree(self.native)

    def __eq__(self, other):
        return isinstance(other, NativeObject) and self.native == (<NativeObject>other).native

    def __hash__(self):
        return <uintptr_t>self.native

    @property
    def type_index(self):
        cdef unsigned index
        check(TVMObjectGetTypeIndex(self.native, &index))
        return index


cdef object make_object(void* handle):
    cdef void* foreign = TVMObjectUnwrapForeign(handle, drop_python_reference)
    cdef NativeObject native
    if foreign != NULL:
        result = <object>foreign
        TVMObjectFree(handle)
        return result
    native = NativeObject.__new__(NativeObject)
    native.native = handle
    return native


# ---------------------------------------------------------------- packed functions

DEF MAX_STACK_ARGS = 8


cdef object call_packed(void* func, tuple args):
    cdef TVMValue stack_values[MAX_STACK_ARGS]
    cdef int stack_codes[MAX_STACK_ARGS]
    cdef TVMValue* values = stack_values
    cdef int* codes = stack_codes
    cdef TVMValue ret
    cdef int ret_code = kTVMNullptr
    cdef Py_ssize_t count = len(args)
    cdef Py_ssize_t i
    cdef int rc
    cdef list kept = None
    if count > MAX_STACK_ARGS:
        values = <TVMValue*>malloc(count * (sizeof(TVMValue) + sizeof(int)))
        codes = <int*>(values + count)
    try:
        for i in range(count):
            if kept is None and not isinstance(args[i], NDArrayBase):
                kept = []
            set_argument(args[i], &values[i], &codes[i], kept)
        ret.v_int64 = 0
        with nogil:
            rc = TVMFuncCall(func, values, codes, <int>count, &ret, &ret_code)
        if rc != 0:
            raise_last_error()
    finally:
        if values != stack_values:
            free(values)
    return take_result(ret, ret_code)


cdef class PackedFuncBase:
    """A function of the native runtime, or one that it can call."""

    cdef void* func
    cdef readonly bint is_global

    def __dealloc__(self):
        if self.func != NULL:
            TVMObjectFree(self.func)

    def __call__(self, *args):
        return call_packed(self.func, args)

    def __eq__(self, other):
        return isinstance(other, PackedFuncBase) and self.func == (<PackedFuncBase>other).func

    def __hash__(self):
        return <uintptr_t>self.func

    @property
    def handle(self):
        return ctypes.c_void_p(<uintptr_t>self.func)


cdef object make_func(void* handle, bint is_global=False):
    cdef PackedFuncBase func = _func_class.__new__(_func_class)
    func.func = handle
    func.is_global = is_global
    return func


cdef int call_python(TVMValue* args, int* codes, int count, void* ret, void* resource) noexcept with gil:
    cdef TVMValue value
    cdef int code
    cdef int i
    cdef list kept = []
    try:
        arguments = [borrow_argument(args[i], codes[i]) for i in range(count)]
        result = (<object>resource)(*arguments)
        if result is not None:
            set_argument(result, &value, &code, kept)
            check(TVMCFuncSetReturn(ret, &value, &code, 1))
    except BaseException as error:
        return set_python_error(error)
    return 0


def make_function(callback):
    """A packed function that calls the Python `callback`."""
    cdef void* handle
    Py_INCREF(callback)
    check(TVMFuncCreateFromCFunc(call_python, <void*>callback, drop_python_reference, &handle))
    return make_func(handle)


def register_global(str name, PackedFuncBase func not None, bint override):
    check(TVMFuncRegisterGlobal(name.encode(), func.func, override))


def get_global(str name):
    """The global function, or None."""
    cdef void* handle
    check(TVMFuncGetGlobal(name.encode(), &handle))
    return None if handle == NULL else make_func(handle, True)


def list_global_names():
    cdef int size
    cdef const char** names
    check(TVMFuncListGlobalNames(&size, &names))
    return [names[i].decode() for i in range(size)]


def remove_global(str name):
    check(TVMFuncRemoveGlobal(name.encode()))


def function_from_address(uintptr_t address, keepalive=None):
    """A packed function over a C function of the signature TVMPackedCFunc."""
    cdef void* handle
    Py_INCREF(keepalive)
    check(TVMFuncCreateFromCFunc(<TVMPackedCFunc><void*>address, <void*>keepalive, drop_python_reference, &handle))
    return make_func(handle)


# ---------------------------------------------------------------- modules

cdef class ModuleBase:
    """A module of the native runtime."""

    cdef void* module

    def __dealloc__(self):
        if self.module != NULL:
            TVMObjectFree(self.module)

    def __eq__(self, other):
        return isinstance(other, ModuleBase) and self.module == (<ModuleBase>other).module

    def __hash__(self):
        return <uintptr_t>self.module

    @property
    def handle(self):
        return ctypes.c_void_p(<uintptr_t>self.module)

    def _find_function(self, str name, bint query_imports):
        """The function, or None."""
        cdef void* handle
        check(TVMModGetFunction(self.module, name.encode(), query_imports, &handle))
        return None if handle == NULL else make_func(handle)

    def _import(self, ModuleBase other not None):
        check(TVMModImport(self.module, other.module))


cdef object make_module(void* handle):
    cdef ModuleBase module = _module_class.__new__(_module_class)
    module.module = handle
    return module


# ---------------------------------------------------------------- arrays

cdef class NDArrayBase:
    """An array of the native runtime."""

    cdef DLTensor* tensor
    cdef bint borrowed

    def __dealloc__(self):
        if self.tensor != NULL and not self.borrowed:
            TVMArrayFree(self.tensor)

    @property
    def shape(self):
        cdef int i
        return tuple([self.tensor.shape[i] for i in range(self.tensor.ndim)])

    @property
    def strides(self):
        """In elements; None if the array is compact."""
        cdef int i
        if self.tensor.strides == NULL:
            return None
        return tuple([self.tensor.strides[i] for i in range(self.tensor.ndim)])

    @property
    def ndim(self):
        return self.tensor.ndim

    @property
    def dtype(self):
        return make_dtype(self.tensor.dtype)

    @property
    def device(self):
        return make_device(self.tensor.device)

    @property
    def is_view(self):
        """Whether the array is only valid during a call."""
        return bool(self.borrowed)

    @property
    def handle(self):
        """The address of the DLTensor."""
        return ctypes.c_void_p(<uintptr_t>self.tensor)

    @property
    def data_address(self):
        return <uintptr_t>self.tensor.data + self.tensor.byte_offset

    def _copy_from_buffer(self, source):
        """Copy from a contiguous Python buffer of the same number of bytes."""
        cdef Py_buffer view
        PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS)
        try:
            check(TVMArrayCopyFromBytes(self.tensor, view.buf, view.len))
        finally:
            PyBuffer_Release(&view)

    def _copy_to_buffer(self, target):
        cdef Py_buffer view
        PyObject_GetBuffer(target, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        try:
            check(TVMArrayCopyToBytes(self.tensor, view.buf, view.len))
        finally:
            PyBuffer_Release(&view)

    def _copyto(self, NDArrayBase target not None):
        check(TVMArrayCopyFromTo(self.tensor, target.tensor, NULL))
        return target

    def _create_view(self, shape, dtype, uint64_t relative_byte_offset):
        cdef DLTensor* out
        cdef int64_t* extents = copy_shape(shape)
        try:
            check(TVMArrayCreateView(self.tensor, extents, <int>len(shape), dtype_of(dtype), relative_byte_offset, &out))
        finally:
            free(extents)
        return make_ndarray(out, False)

    def to_dlpack(self):
        """A DLPack capsule that shares the memory."""
        cdef DLManagedTensor* managed
        if self.borrowed:
            raise ValueError("an array that was borrowed for a call cannot be shared; copy it first")
        check(TVMArrayToDLPack(self.tensor, &managed))
        return PyCapsule_New(managed, "dltensor", delete_unused_capsule)


cdef void delete_unused_capsule(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, "dltensor"):
        TVMDLManagedTensorCallDeleter(<DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor"))


cdef object make_ndarray(DLTensor* tensor, bint borrowed):
    cdef NDArrayBase array = _ndarray_class.__new__(_ndarray_class)
    array.tensor = tensor
    array.borrowed = borrowed
    return array


cdef int64_t* copy_shape(shape) except NULL:
    cdef int64_t* extents = <int64_t*>malloc((len(shape) + 1) * sizeof(int64_t))
    cdef Py_ssize_t i
    try:
        for i in range(len(shape)):
            extents[i] = shape[i]
    except BaseException:
        free(extents)
        raise
    return extents


def new_ndarray(tuple shape, dtype, DeviceBase device not None):
    """An array with undefined contents."""
    cdef DLTensor* out
    cdef DLDataType element = dtype_of(dtype)
    cdef int64_t* extents = copy_shape(shape)
    try:
        check(TVMArrayAlloc(extents, <int>len(shape), element.code, element.bits, element.lanes,
                            <int>device.device.device_type, device.device.device_id, &out))
    finally:
        free(extents)
    return make_ndarray(out, False)


cdef void release_buffer(DLManagedTensor* managed) noexcept with gil:
    Py_DECREF(<object>managed.manager_ctx)
    free(managed.dl_tensor.shape)
    free(managed)


def ndarray_over(owner, uintptr_t address, tuple shape, dtype):
    """An array on the CPU over memory that `owner` keeps alive; compact."""
    cdef DLTensor* out
    cdef DLManagedTensor* managed
    cdef int64_t* extents = copy_shape(shape)
    managed = <DLManagedTensor*>malloc(sizeof(DLManagedTensor))
    managed.dl_tensor.data = <void*>address
    managed.dl_tensor.device.device_type = kDLCPU
    managed.dl_tensor.device.device_id = 0
    managed.dl_tensor.ndim = <int>len(shape)
    managed.dl_tensor.dtype = dtype_of(dtype)
    managed.dl_tensor.shape = extents
    managed.dl_tensor.strides = NULL
    managed.dl_tensor.byte_offset = 0
    Py_INCREF(owner)
    managed.manager_ctx = <void*>owner
    managed.deleter = release_buffer
    check(TVMArrayFromDLPack(managed, &out))
    return make_ndarray(out, False)


def ndarray_from_dlpack(capsule):
    """An array that shares the memory of a DLPack capsule, which is used up."""
    cdef DLTensor* out
    if not PyCapsule_IsValid(capsule, "dltensor"):
        raise ValueError("from_dlpack needs a capsule that was not used before")
    check(TVMArrayFromDLPack(<DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor"), &out))
    PyCapsule_SetName(capsule, "used_dltensor")
    return make_ndarray(out, False)


def borrow_tensor(uintptr_t address, owner):
    """An array over the DLTensor at `address`, valid while `owner` lives."""
    cdef DLTensor* source = <DLTensor*><void*>address
    cdef int i
    array = ndarray_over(owner, <uintptr_t>source.data + source.byte_offset,
                         tuple([source.shape[i] for i in range(source.ndim)]), make_dtype(source.dtype))
    return array
