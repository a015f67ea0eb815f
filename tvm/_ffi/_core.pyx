"""The binding of the native runtime: values across the language border, packed calls, errors."""
# cython: language_level=3, boundscheck=False, wraparound=False, embedsignature=True

import ctypes
import numbers

from cpython.bytes cimport PyBytes_AsStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New, PyCapsule_SetName
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_STRIDED_RO, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport strlen

from tvm.support.dtype import DType, dtype_from_code

cdef extern from "Python.h" nogil:
    int Py_IsInitialized()

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL

    ctypedef struct TypeObject "PyTypeObject":
        const char* tp_name
        object (*tp_new)(type, tuple, void*)


include "c_api.pxi"


# ---------------------------------------------------------------- the Python classes of native values

cdef object _ndarray_class = None
cdef object _func_class = None
cdef object _module_class = None
cdef object _device_class = None
cdef object _error_from_text = None
cdef object _object_class = ()
cdef object _native_class = None
cdef object _numpy_bool = ()
cdef object _rvalue_class = ()
cdef object _loan_class = ()


def set_classes(*, object=None, native=None, ndarray=None, func=None, module=None, device=None, error=None,
                numpy_bool=None, rvalue=None, loan=None):
    """Tell which Python classes stand for native values; `error` makes an exception of a message.

    `loan.of(tensor, loans)` gives an array for a tensor of another package, and appends what
    `give_back()` is called of after the call.
    """
    global _object_class, _ndarray_class, _func_class, _module_class, _device_class, _error_from_text, _numpy_bool
    global _native_class, _rvalue_class, _loan_class
    _loan_class = loan or _loan_class
    _rvalue_class = rvalue or _rvalue_class
    _object_class = object or _object_class
    _native_class = native or _native_class
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


cdef void drop_python_reference(void* obj) noexcept nogil:
    # native objects may outlive the interpreter
    if Py_IsInitialized():
        with gil:
            Py_DECREF(<object>obj)


cdef void* wrap_python(object value) except NULL:
    """A native object that holds `value`; the caller owns the reference."""
    cdef void* handle
    Py_INCREF(value)
    TVMObjectWrapForeign(<void*>value, drop_python_reference, &handle)
    return handle


cdef const char* python_type_name(void* obj) noexcept with gil:
    cdef type kind = type(<object>obj)
    return (<TypeObject*>kind).tp_name


TVMObjectSetForeignNamer(python_type_name)


cdef int check_python_signals() noexcept with gil:
    try:
        PyErr_CheckSignals()
    except BaseException as error:
        return set_python_error(error)
    return 0


cdef void take_python_reference(void* obj) noexcept with gil:
    Py_INCREF(<object>obj)


TVMBackendRegisterEnvCAPI("PyErr_CheckSignals", <void*>check_python_signals)
TVMBackendRegisterEnvCAPI("Py_IncRef", <void*>take_python_reference)
TVMBackendRegisterEnvCAPI("Py_DecRef", <void*>drop_python_reference)


def raise_last_ffi_error():
    """Raise the exception for the error that the last entry point set."""
    raise_last_error()


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


cdef inline void* address_of(stream):
    return NULL if stream is None else <void*><uintptr_t>(stream.value or 0)


def create_stream(DeviceBase device not None):
    """A new stream of work on the device, None if it has no streams."""
    cdef void* stream = NULL
    check(TVMStreamCreate(<int>device.device.device_type, device.device.device_id, &stream))
    return None if stream == NULL else ctypes.c_void_p(<uintptr_t>stream)


def free_stream(DeviceBase device not None, stream):
    check(TVMStreamFree(<int>device.device.device_type, device.device.device_id, address_of(stream)))


def set_stream(DeviceBase device not None, stream):
    check(TVMSetStream(<int>device.device.device_type, device.device.device_id, address_of(stream)))


def synchronize(DeviceBase device not None, stream=None):
    """Wait for all work on the device."""
    cdef int rc
    cdef void* handle = address_of(stream)
    with nogil:
        rc = TVMSynchronize(<int>device.device.device_type, device.device.device_id, handle)
    check(rc)


cdef object make_device(DLDevice device):
    return _device_class(<int>device.device_type, device.device_id)


include "values.pxi"


# ---------------------------------------------------------------- packed functions

DEF MAX_STACK_ARGS = 8


cdef object call_packed(void* func, tuple args):
    cdef TVMValue stack_values[MAX_STACK_ARGS]
    cdef int stack_codes[MAX_STACK_ARGS]
    cdef TVMValue* values
    cdef Py_ssize_t count = len(args)
    if count <= MAX_STACK_ARGS:
        return call_with(func, args, count, stack_values, stack_codes)
    values = <TVMValue*>malloc(count * (sizeof(TVMValue) + sizeof(int)))
    try:
        return call_with(func, args, count, values, <int*>(values + count))
    finally:
        free(values)


cdef inline object call_with(void* func, tuple args, Py_ssize_t count, TVMValue* values, int* codes):
    cdef TVMValue ret
    cdef int ret_code = kTVMNullptr
    cdef Py_ssize_t i = 0
    cdef int rc
    cdef list kept = None
    try:
        for i in range(count):
            arg = args[i]
            if isinstance(arg, NDArrayBase):
                values[i].v_handle = live(<NDArrayBase>arg)
                codes[i] = kTVMDLTensorHandle if (<NDArrayBase>arg).borrowed else kTVMNDArrayHandle
            elif not set_plain_argument(arg, &values[i], &codes[i]):
                if kept is None:
                    kept = []
                if hasattr(arg, "__dlpack__"):  # tensors of other packages
                    arg = _loan_class.of(arg, kept)
                    values[i].v_handle = (<NDArrayBase?>arg).tensor
                    codes[i] = kTVMNDArrayHandle
                else:
                    set_rare_argument(arg, &values[i], &codes[i], kept)
    except (BufferError, OverflowError, ValueError, TypeError) as error:
        raise rejected_argument(func, i, args[i], error) from error
    ret.v_int64 = 0
    with nogil:
        rc = TVMFuncCall(func, values, codes, <int>count, &ret, &ret_code)
    if rc != 0:
        raise_last_error()
    result = None if ret_code == kTVMNullptr else take_result(ret, ret_code)
    if kept is not None:
        for loan in kept:
            if isinstance(loan, _loan_class):
                loan.give_back()
    return result


cdef object rejected_argument(void* func, Py_ssize_t index, object arg, object error):
    """The error again, with the function, the argument's place and its type."""
    cdef const char* name = NULL
    TVMFuncGetName(func, &name)
    who = f"{name.decode()}: " if name[0] else ""
    try:
        return type(error)(f"{who}argument {index} of type {type(arg).__name__}: {error}")
    except TypeError:  # a class with a constructor of its own, such as UnicodeEncodeError
        return error


# whether an object is being made around a native one; nobody else makes such objects, for their
# address would be null
cdef bint _wraps_native = False


cdef int require_native(object self) except -1:
    if not _wraps_native:
        raise TypeError(f"{type(self).__name__} has no constructor: the runtime makes its objects")
    return 0


cdef void* retained(object self, object handle, void* previous) except? NULL:
    """The object at the address in a `ctypes.c_void_p`, with a reference of its own."""
    cdef void* address
    if not isinstance(handle, ctypes.c_void_p) or not handle.value:
        raise TypeError(f"{type(self).__name__} has no constructor: the runtime makes its objects")
    address = <void*><uintptr_t>handle.value
    TVMObjectRetain(address)
    if previous != NULL:
        TVMObjectFree(previous)
    return address


cdef object wrapper(type kind):
    assert kind is not None, "tvm.runtime is imported first"
    global _wraps_native
    _wraps_native = True
    try:
        return (<TypeObject*>kind).tp_new(kind, (), NULL)
    finally:
        _wraps_native = False


cdef class PackedFuncBase:
    """A function of the native runtime, or one that it can call."""

    cdef void* func
    cdef readonly bint is_global

    def __cinit__(self, *args, **_kwargs):
        if type(self).__init__ is PackedFuncBase.__init__ and not args:
            require_native(self)

    def __init__(self, handle=None, bint is_global=False):
        self.func = retained(self, handle, self.func)
        self.is_global = is_global

    def __dealloc__(self):
        if self.func != NULL:
            TVMObjectFree(self.func)

    def __call__(self, *args):
        if self.func == NULL:
            raise TypeError("this packed function was never made: call its constructor with a handle")
        return call_packed(self.func, args)

    def __eq__(self, other):
        return isinstance(other, PackedFuncBase) and self.func == (<PackedFuncBase>other).func

    def __hash__(self):
        return <uintptr_t>self.func

    @property
    def handle(self):
        return ctypes.c_void_p(<uintptr_t>self.func)

    @property
    def name(self):
        """The name it is registered under, empty if it is not."""
        cdef const char* text = ""
        if self.func != NULL:
            check(TVMFuncGetName(self.func, &text))
        return text.decode()


cdef object make_func(void* handle, bint is_global=False):
    cdef PackedFuncBase func = wrapper(_func_class)
    func.func = handle
    func.is_global = is_global
    return func


cdef int call_python(TVMValue* args, int* codes, int count, void* ret, void* resource) noexcept with gil:
    cdef TVMValue value
    cdef int code
    cdef int i
    cdef list kept
    cdef list arguments = []
    try:
        for i in range(count):
            arguments.append(borrow_argument(args[i], codes[i]))
        result = (<object>resource)(*arguments)
        if result is not None:
            if isinstance(result, NDArrayBase) and (<NDArrayBase>result).borrowed:
                result = owned_copy(result)
            if not set_plain_argument(result, &value, &code):
                kept = []
                set_rare_argument(result, &value, &code, kept)
            check(TVMCFuncSetReturn(ret, &value, &code, 1))
    except BaseException as error:
        return set_python_error(error)
    finally:
        end_borrowing(arguments)
    return 0


cdef void end_borrowing(list arguments) noexcept:
    """Who keeps an array that was borrowed for a call learns that the call has ended."""
    for argument in arguments:
        if isinstance(argument, NDArrayBase) and (<NDArrayBase>argument).borrowed:
            (<NDArrayBase>argument).tensor = NULL


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

    def __cinit__(self, *args, **_kwargs):
        if type(self).__init__ is ModuleBase.__init__ and not args:
            require_native(self)

    def __init__(self, handle=None):
        self.module = retained(self, handle, self.module)

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
        if self.module == NULL:
            raise TypeError("this module was never made: call its constructor with a handle")
        check(TVMModGetFunction(self.module, name.encode(), query_imports, &handle))
        return None if handle == NULL else make_func(handle)

    def _import(self, ModuleBase other not None):
        if self.module == NULL or other.module == NULL:
            raise TypeError("this module was never made: call its constructor with a handle")
        check(TVMModImport(self.module, other.module))


cdef object make_module(void* handle):
    cdef ModuleBase module = wrapper(_module_class)
    module.module = handle
    return module


include "array.pxi"
