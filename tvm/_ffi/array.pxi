# Arrays.

cdef struct ManagedTensorVersioned:
    uint32_t major
    uint32_t minor
    void* manager_ctx
    void (*deleter)(ManagedTensorVersioned*) noexcept
    uint64_t flags
    DLTensor dl_tensor


DEF READ_ONLY = 1  # of a versioned tensor's flags


cdef class NDArrayBase:
    """An array of the native runtime."""

    cdef DLTensor* tensor  # NULL once the call that it was borrowed for has ended
    cdef bint borrowed
    cdef readonly bint is_readonly

    def __cinit__(self):
        require_native(self)

    def __dealloc__(self):
        if self.tensor != NULL and not self.borrowed:
            TVMArrayFree(self.tensor)

    @property
    def shape(self):
        cdef int i
        cdef DLTensor* tensor = live(self)
        return tuple([tensor.shape[i] for i in range(tensor.ndim)])

    @property
    def strides(self):
        """In elements; None if the array is compact."""
        cdef int i
        cdef DLTensor* tensor = live(self)
        if tensor.strides == NULL:
            return None
        return tuple([tensor.strides[i] for i in range(tensor.ndim)])

    @property
    def ndim(self):
        return live(self).ndim

    @property
    def dtype(self):
        return make_dtype(live(self).dtype)

    @property
    def device(self):
        return make_device(live(self).device)

    @property
    def is_view(self):
        """Whether the array is only valid during a call."""
        return bool(self.borrowed)

    @property
    def handle(self):
        """The address of the DLTensor."""
        return ctypes.c_void_p(<uintptr_t>live(self))

    @property
    def data_address(self):
        return <uintptr_t>live(self).data + live(self).byte_offset

    def _copy_from_buffer(self, source):
        """Copy from a contiguous Python buffer of the same number of bytes."""
        cdef Py_buffer view
        cdef DLTensor* tensor = writable(self)
        PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS)
        try:
            check(TVMArrayCopyFromBytes(tensor, view.buf, view.len))
        finally:
            PyBuffer_Release(&view)

    def _copy_from_strided(self, source):
        """Copy from a Python buffer of the same shape, whose elements have this array's dtype and lie anywhere."""
        cdef Py_buffer view
        cdef DLTensor* tensor = writable(self)
        cdef DLTensor host = tensor[0]
        cdef int64_t* strides
        PyObject_GetBuffer(source, &view, PyBUF_STRIDED_RO)
        strides = <int64_t*>malloc((2 * view.ndim + 1) * sizeof(int64_t))
        try:
            if strides == NULL:
                raise MemoryError()
            if view.itemsize != (tensor.dtype.bits * tensor.dtype.lanes + 7) // 8:
                raise ValueError(f"a copy requires elements of {self.dtype}, got {view.itemsize} bytes for each")
            for i in range(view.ndim):
                if view.strides[i] % view.itemsize != 0:
                    raise ValueError("a copy requires strides of whole elements")
                strides[i] = view.strides[i] // view.itemsize
                strides[view.ndim + i] = view.shape[i]
            host.data, host.byte_offset, host.ndim = view.buf, 0, view.ndim
            host.device = DLDevice(<DLDeviceType>1, 0)
            host.strides, host.shape = strides, strides + view.ndim
            check(TVMArrayCopyFromTo(&host, tensor, NULL))
        finally:
            free(strides)
            PyBuffer_Release(&view)

    def _copy_to_buffer(self, target):
        cdef Py_buffer view
        cdef DLTensor* tensor = live(self)
        PyObject_GetBuffer(target, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
        try:
            check(TVMArrayCopyToBytes(tensor, view.buf, view.len))
        finally:
            PyBuffer_Release(&view)

    def _copyto(self, NDArrayBase target not None):
        check(TVMArrayCopyFromTo(live(self), writable(target), NULL))
        return target

    def _create_view(self, shape, dtype, uint64_t relative_byte_offset):
        cdef DLTensor* out
        cdef NDArrayBase view
        cdef int64_t* extents
        require_owned(self)
        extents = copy_shape(shape)
        try:
            check(TVMArrayCreateView(self.tensor, extents, <int>len(shape), dtype_of(dtype), relative_byte_offset, &out))
        finally:
            free(extents)
        view = make_ndarray(out, False)
        view.is_readonly = self.is_readonly
        return view

    def to_dlpack(self):
        """A DLPack capsule that shares the memory."""
        cdef DLManagedTensor* managed
        require_owned(self)
        if self.is_readonly:
            raise BufferError("an array that may only be read can be exported by DLPack 1.0 and later: "
                              "pass max_version=(1, 0) to __dlpack__, or copy it first")
        check(TVMArrayToDLPack(self.tensor, &managed))
        return PyCapsule_New(managed, "dltensor", delete_unused_capsule)

    def _to_dlpack_versioned(self, uint64_t flags):
        """The capsule of DLPack 1.0, by which consumers may write into the memory."""
        cdef DLManagedTensor* managed
        cdef ManagedTensorVersioned* versioned
        require_owned(self)
        check(TVMArrayToDLPack(self.tensor, &managed))
        versioned = <ManagedTensorVersioned*>malloc(sizeof(ManagedTensorVersioned))
        versioned.major = 1
        versioned.minor = 0
        versioned.manager_ctx = managed
        versioned.deleter = delete_versioned
        versioned.flags = flags | (READ_ONLY if self.is_readonly else 0)
        versioned.dl_tensor = managed.dl_tensor
        return PyCapsule_New(versioned, "dltensor_versioned", delete_unused_versioned_capsule)


cdef void delete_unused_capsule(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, "dltensor"):
        TVMDLManagedTensorCallDeleter(<DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor"))


cdef void delete_versioned(ManagedTensorVersioned* versioned) noexcept:
    TVMDLManagedTensorCallDeleter(<DLManagedTensor*>versioned.manager_ctx)
    free(versioned)


cdef void delete_unused_versioned_capsule(object capsule) noexcept:
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        delete_versioned(<ManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned"))


cdef inline DLTensor* live(NDArrayBase array) except NULL:
    if array.tensor == NULL:
        raise ValueError("this array was only valid during the call it was passed to; keep a copy of it: "
                         "array.numpy() or array.copyto(tvm.cpu())")
    return array.tensor


cdef inline DLTensor* writable(NDArrayBase array) except NULL:
    if array.is_readonly:
        raise ValueError("this array stands for memory that may only be read; write into a copy of it: "
                         "array.copyto(tvm.cpu())")
    return live(array)


cdef int require_owned(NDArrayBase array) except -1:
    live(array)
    if array.borrowed:
        raise ValueError("an array that was borrowed for a call cannot be shared; copy it first")
    return 0


cdef object owned_copy(NDArrayBase array):
    """The values of an array in memory of their own."""
    cdef DLTensor* source = live(array)
    cdef DLTensor* out
    check(TVMArrayAlloc(source.shape, source.ndim, source.dtype.code, source.dtype.bits, source.dtype.lanes,
                        <int>source.device.device_type, source.device.device_id, &out))
    copy = make_ndarray(out, False)
    check(TVMArrayCopyFromTo(source, out, NULL))
    return copy


cdef object make_ndarray(DLTensor* tensor, bint borrowed):
    cdef NDArrayBase array = wrapper(_ndarray_class)
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
    cdef DLDataType wanted = dtype_of(dtype)
    cdef int64_t* extents = copy_shape(shape)
    managed = <DLManagedTensor*>malloc(sizeof(DLManagedTensor))
    managed.dl_tensor.data = <void*>address
    managed.dl_tensor.device.device_type = kDLCPU
    managed.dl_tensor.device.device_id = 0
    managed.dl_tensor.ndim = <int>len(shape)
    managed.dl_tensor.dtype.code = 1
    managed.dl_tensor.dtype.bits = 8
    managed.dl_tensor.dtype.lanes = 1
    managed.dl_tensor.shape = extents
    managed.dl_tensor.strides = NULL
    managed.dl_tensor.byte_offset = 0
    Py_INCREF(owner)
    managed.manager_ctx = <void*>owner
    managed.deleter = release_buffer
    check(TVMArrayFromDLPack(managed, &out))
    # DLPack numbers the kinds of elements in another way
    out.dtype = wanted
    return make_ndarray(out, False)


def ndarray_over_buffer(owner, tuple shape, dtype):
    """As `ndarray_over`, over the memory of a contiguous Python buffer."""
    cdef Py_buffer view
    cdef NDArrayBase array
    PyObject_GetBuffer(owner, &view, PyBUF_C_CONTIGUOUS)
    cdef uintptr_t address = <uintptr_t>view.buf
    cdef bint is_readonly = view.readonly
    PyBuffer_Release(&view)
    array = ndarray_over(owner, address, shape, dtype)
    array.is_readonly = is_readonly
    return array


def ndarray_from_dlpack(capsule):
    """An array that shares the memory of a DLPack capsule, which is used up; a copy of memory that may only be read."""
    cdef DLTensor* out
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        array = array_over_versioned(<ManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned"))
        PyCapsule_SetName(capsule, "used_dltensor_versioned")
        return array
    if not PyCapsule_IsValid(capsule, "dltensor"):
        raise ValueError(f"from_dlpack needs a DLPack capsule that was not used before, got {capsule!r}")
    check(TVMArrayFromDLPack(<DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor"), &out))
    PyCapsule_SetName(capsule, "used_dltensor")
    return make_ndarray(out, False)


cdef object array_over_versioned(ManagedTensorVersioned* versioned):
    cdef DLManagedTensor* managed
    cdef DLTensor* out
    if versioned.major != 1:
        raise BufferError(f"from_dlpack knows DLPack 1, got version {versioned.major}.{versioned.minor}")
    managed = <DLManagedTensor*>malloc(sizeof(DLManagedTensor))
    managed.dl_tensor = versioned.dl_tensor
    managed.manager_ctx = versioned
    managed.deleter = release_versioned
    try:
        check(TVMArrayFromDLPack(managed, &out))
    except BaseException:
        free(managed)
        raise
    return writable_or_copy(make_ndarray(out, False), versioned.flags)


cdef object writable_or_copy(NDArrayBase array, uint64_t flags):
    """The array itself, or a read-only copy if kernels must not write into its memory."""
    cdef NDArrayBase copy
    if not flags & READ_ONLY:
        return array
    copy = owned_copy(array)
    copy.is_readonly = True
    return copy


# DLPack's table of functions for its own kind of object, with which no capsule is made
cdef struct ExchangeApi:
    uint32_t major
    uint32_t minor
    void* previous
    void* allocate
    int (*from_object)(void*, ManagedTensorVersioned**) except -1
    void* to_object


cdef void release_versioned(DLManagedTensor* managed) noexcept:
    cdef ManagedTensorVersioned* versioned = <ManagedTensorVersioned*>managed.manager_ctx
    if versioned.deleter != NULL:
        versioned.deleter(versioned)
    free(managed)


def ndarray_from_exchange(api, value):
    """An array that shares the memory of an object whose class has the table `api`; None if it cannot."""
    cdef ExchangeApi* table
    cdef ManagedTensorVersioned* versioned = NULL
    if not PyCapsule_IsValid(api, "dlpack_exchange_api"):
        return None
    table = <ExchangeApi*>PyCapsule_GetPointer(api, "dlpack_exchange_api")
    if table.major != 1:
        return None
    try:
        if table.from_object(<void*>value, &versioned) != 0 or versioned == NULL:
            return None
    except Exception:
        return None
    try:
        return array_over_versioned(versioned)
    except BaseException:
        if versioned.deleter != NULL:
            versioned.deleter(versioned)
        raise


def borrow_tensor(uintptr_t address, owner):
    """An array over the DLTensor at `address`, valid while `owner` lives."""
    cdef DLTensor* source = <DLTensor*><void*>address
    cdef int i
    array = ndarray_over(owner, <uintptr_t>source.data + source.byte_offset,
                         tuple([source.shape[i] for i in range(source.ndim)]), make_dtype(source.dtype))
    return array
