# Values as arguments and results of calls.

# both ways between a DType and its triple packed into a number
cdef dict _packed_types = {}
cdef dict _types = {}


cdef DLDataType dtype_of(object dtype) except *:
    cdef DLDataType result
    cdef uint64_t packed
    found = _packed_types.get(dtype)
    if found is None:
        found = dtype.type_code | dtype.bits << 8 | dtype.lanes << 16
        _packed_types[dtype] = found
    packed = found
    result.code = packed & 0xFF
    result.bits = packed >> 8 & 0xFF
    result.lanes = packed >> 16
    return result


cdef object make_dtype(DLDataType dtype):
    cdef uint64_t packed = dtype.code | <uint64_t>dtype.bits << 8 | <uint64_t>dtype.lanes << 16
    found = _types.get(packed)
    if found is None:
        found = dtype_from_code(dtype.code, dtype.bits, dtype.lanes)
        _types[packed] = found
    return found


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


cdef inline bint set_plain_argument(object arg, TVMValue* value, int* code) except -1:
    """Whether `arg` is of one of the kinds that need nothing to be kept for the call; sets it if so."""
    cdef Py_ssize_t size
    if type(arg) is int:
        value.v_int64 = arg
        code[0] = kTVMArgInt
    elif type(arg) is float:
        value.v_float64 = arg
        code[0] = kTVMArgFloat
    elif type(arg) is str:
        # the encoded form stays with the text, which lives as long as the call
        value.v_str = PyUnicode_AsUTF8AndSize(arg, &size)
        if <Py_ssize_t>strlen(value.v_str) != size:
            raise ValueError("text with a NUL character cannot cross; pass bytes")
        code[0] = kTVMStr
    elif arg is None:
        value.v_handle = NULL
        code[0] = kTVMNullptr
    elif type(arg) is bool:
        value.v_int64 = arg is True
        code[0] = kTVMArgBool
    else:
        return False
    return True


cdef inline int set_argument(object arg, TVMValue* value, int* code, list kept) except -1:
    if not set_plain_argument(arg, value, code):
        set_rare_argument(arg, value, code, kept)
    return 0


cdef int set_rare_argument(object arg, TVMValue* value, int* code, list kept) except -1:
    cdef BytesArgument bytes_argument
    cdef Py_ssize_t size
    cdef char* data
    if isinstance(arg, NDArrayBase):
        value.v_handle = live(<NDArrayBase>arg)
        code[0] = kTVMDLTensorHandle if (<NDArrayBase>arg).borrowed else kTVMNDArrayHandle
    elif isinstance(arg, str):
        if type(arg) is DType:
            value.v_type = dtype_of(arg)
            code[0] = kTVMDataType
            return 0
        text = str.__str__(arg)  # of a class of its own
        kept.append(text)
        set_plain_argument(text, value, code)
    elif isinstance(arg, PackedFuncBase):
        value.v_handle = (<PackedFuncBase>arg).func
        code[0] = kTVMNullptr if value.v_handle == NULL else kTVMPackedFuncHandle
    elif isinstance(arg, ModuleBase):
        value.v_handle = (<ModuleBase>arg).module
        code[0] = kTVMNullptr if value.v_handle == NULL else kTVMModuleHandle
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
    elif isinstance(arg, _object_class):
        native = arg._native
        if native is None:
            set_python_object(arg, value, code, kept)
        else:
            kept.append(native)  # which may be made for this call
            value.v_handle = (<NativeObject?>native).native
            code[0] = kTVMNullptr if value.v_handle == NULL else kTVMObjectHandle
    elif isinstance(arg, _rvalue_class):
        native = arg.obj._native if isinstance(arg.obj, _object_class) else None
        if native is None:
            set_argument(arg.obj, value, code, kept)
        else:
            value.v_handle = &(<NativeObject?>native).native
            code[0] = kTVMObjectRValueRefArg
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
        # nobody knows how long the tensor lives
        return owned_copy(make_ndarray(<DLTensor*>value.v_handle, True))
    raise TypeError(f"a packed function returned a value of unknown type code {code}")


cdef object borrow_argument(TVMValue value, int code):
    """The Python value of an argument, which belongs to the caller."""
    if code == kTVMDLTensorHandle:
        return make_ndarray(<DLTensor*>value.v_handle, True)
    if code == kTVMNDArrayHandle:
        TVMArrayRetain(<DLTensor*>value.v_handle)
    elif code in (kTVMPackedFuncHandle, kTVMModuleHandle, kTVMObjectHandle):
        TVMObjectRetain(value.v_handle)
    elif code == kTVMObjectRValueRefArg:
        value.v_handle = (<void**>value.v_handle)[0]
        if value.v_handle == NULL:
            return None
        TVMObjectRetain(value.v_handle)
        code = kTVMObjectHandle
    return take_result(value, code)


cdef class NativeObject:
    """A reference to an object of the native runtime."""

    cdef void* native

    def __cinit__(self):
        require_native(self)

    def __dealloc__(self):
        if self.native != NULL:
            TVMObjectFree(self.native)

    def __eq__(self, other):
        return isinstance(other, NativeObject) and self.native == (<NativeObject>other).native

    def __hash__(self):
        return hash(<uintptr_t>self.native)

    @property
    def handle(self):
        return ctypes.c_void_p(<uintptr_t>self.native)

    @property
    def type_index(self):
        cdef unsigned index
        check(TVMObjectGetTypeIndex(self.native, &index))
        return index


# the Python classes of native kinds of objects, by type index
cdef dict _classes = {}


# functions that make Python values of native containers, by type index
cdef dict _converters = {}


def set_object_converter(unsigned index, convert):
    """Let native objects of that type index become what `convert` makes of them."""
    _converters[index] = convert


def set_object_class(unsigned index, cls):
    """Let native objects of that type index become instances of `cls`, with the attribute `_native`."""
    _classes[index] = cls


def type_index(str key):
    """The index of a type key, given out now if it is new."""
    cdef unsigned index
    check(TVMObjectTypeKey2Index(key.encode(), &index))
    return index


def type_key(unsigned index):
    """The type key of an index."""
    cdef char* key
    check(TVMObjectTypeIndex2Key(index, &key))
    try:
        return key.decode()
    finally:
        free(key)


cdef object make_object(void* handle):
    cdef void* foreign = TVMObjectUnwrapForeign(handle, drop_python_reference)
    cdef NativeObject native
    cdef unsigned index
    if foreign != NULL:
        result = <object>foreign
        TVMObjectFree(handle)
        return result
    native = wrapper(_native_class)
    native.native = handle
    check(TVMObjectGetTypeIndex(handle, &index))
    convert = _converters.get(index)
    if convert is not None:
        return convert(native)
    cls = _classes.get(index)
    if cls is None:
        return native
    result = cls.__new__(cls)
    result._native = native
    return result
