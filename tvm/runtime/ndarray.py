"""Arrays that compiled code works on."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from tvm._ffi import _core
from tvm._ffi._core import DeviceBase, NDArrayBase
from tvm._ffi.runtime_ctypes import Device, TVMArrayHandle
from tvm.runtime.device import (
    cl,
    cpu,
    cuda,
    device,
    ext_dev,
    gpu,
    hexagon,
    metal,
    mtl,
    opencl,
    rocm,
    vpi,
    vulkan,
    webgpu,
)
from tvm.runtime.object import Object
from tvm.support.deprecation import warn_renamed
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

AnyArray = npt.NDArray[Any]
_ADDRESS = np.dtype("uint64")
_DLPACK_IS_COPY = 2


class NDArray(NDArrayBase, Object):
    """An array on a device, made by :func:`array`, :func:`empty` or :func:`from_dlpack`."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """The number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def ctx(self) -> Device:
        """An older name of ``device``."""
        warn_renamed("NDArray.ctx", "NDArray.device")
        device: Device = self.device
        return device

    def require_writable(self, who: str) -> None:
        """Raise if the array stands for memory that may only be read."""
        if self.is_readonly:
            raise ValueError(
                f"{who} needs an array that may be written, got one that stands for memory that may "
                "only be read; write into a copy of it: array.copyto(tvm.cpu())"
            )

    @property
    def handle(self) -> Any:
        """A pointer of ctypes to the DLTensor."""
        return ctypes.cast(super().handle, TVMArrayHandle)

    @property
    def _tvm_handle(self) -> int:
        """The address of the DLTensor, which classes with arrays of their own hand on."""
        address = super().handle.value
        assert address is not None
        return address

    def same_as(self, other: object) -> bool:
        """Whether both are the same native array."""
        return isinstance(other, NDArray) and self._tvm_handle == other._tvm_handle

    def __eq__(self, other: object) -> bool:
        return self.same_as(other)

    def __hash__(self) -> int:
        return hash(self._tvm_handle)

    def elements(self) -> AnyArray:
        """The elements as a numpy array that must not be changed: no copy where numpy can read them."""
        try:
            return np.from_dlpack(self)
        except (BufferError, RuntimeError, TypeError):  # types that DLPack or numpy lacks
            return self.numpy()

    def numpy(self) -> AnyArray:
        """A copy as a numpy array."""
        dtype = self.dtype
        shape = self.shape if dtype.lanes == 1 else (*self.shape, dtype.lanes)
        result = np.empty(shape, _held_type(dtype))
        self._copy_to_buffer(_plain(result))
        return result

    def asnumpy(self) -> AnyArray:
        """An older name of :meth:`numpy`."""
        warn_renamed("NDArray.asnumpy", "NDArray.numpy")
        return self.numpy()

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if stream not in (None, -1):
            raise ValueError(f"__dlpack__ needs stream=None on {self.device}, got {stream!r}")
        source = self
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if copy is False:
                raise BufferError(
                    f"__dlpack__ cannot go from {self.device} to {dl_device} uncopied"
                )
            source = self.copyto(Device(*dl_device))
        elif copy:
            source = self.copyto(self.device)
        if max_version is None or max_version[0] < 1:
            return source.to_dlpack()
        return source._to_dlpack_versioned(0 if source is self else _DLPACK_IS_COPY)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.device_type, self.device.device_id

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copy from an array of the same shape; elements of Python and numpy arrays are converted.

        Elements of uint16 are the bits of bfloat16, as in programs without a type for it.
        """
        if isinstance(source_array, NDArray):
            source_array.copyto(self)
            return self
        dtype = self.dtype
        shape = self.shape if dtype.lanes == 1 else (*self.shape, dtype.lanes)
        source = _as_numbers(source_array, "copyfrom")
        if source.shape != shape:
            raise ValueError(f"copyfrom needs shape {shape}, got {source.shape}")
        if dtype == "bfloat16" and source.dtype == np.uint16:
            source = source.view(_held_type(dtype))
        compact = np.ascontiguousarray(source, _held_type(dtype)).reshape(shape)
        self._copy_from_buffer(_plain(compact))
        return self

    def copyto(self, target: NDArray | DeviceBase, mem_scope: str | None = None) -> NDArray:
        """Copy to another array, or to a new array on a device."""
        if isinstance(target, NDArrayBase):
            if target.shape != self.shape or target.dtype is not self.dtype:
                raise ValueError(
                    f"copyto needs shape {self.shape} and dtype {self.dtype}, "
                    f"got {target.shape} and {target.dtype}"
                )
            array: NDArray = self._copyto(target)
            return array
        if isinstance(target, DeviceBase):
            copy = empty(
                self.shape, self.dtype, Device(target.device_type, target.device_id), mem_scope
            )
            return self.copyto(copy)
        raise TypeError(f"copyto needs an NDArray or a Device, got {type(target).__name__}")

    def view(self, shape: tuple[int, ...], dtype: str | None = None) -> NDArray:
        """The same memory under another shape or dtype of at most as many bytes."""
        return self._create_view(shape, dtype)

    def _create_view(
        self, shape: Sequence[int], dtype: str | None = None, relative_byte_offset: int = 0
    ) -> NDArray:
        element = as_dtype(dtype or self.dtype)
        if relative_byte_offset < 0:
            raise ValueError(f"a view begins at byte 0 or later, got {relative_byte_offset}")
        array: NDArray = super()._create_view(tuple(shape), element, relative_byte_offset)
        return array

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign all of the array: ``a[:] = value``; ``a[()]`` and ``a[...]`` mean the same."""
        if not (index is Ellipsis or index == () or index == slice(None)):
            raise ValueError(
                "assignment to a part of an array is not supported, only a[:] = value; "
                "change a part of a.numpy() and copy it back with a[:] = ..."
            )
        self.require_writable("assignment")
        if isinstance(value, NDArrayBase):
            if isinstance(value, NDArray) and not value.same_as(self):
                value.copyto(self)
            return
        dtype = self.dtype
        shape = self.shape if dtype.lanes == 1 else (*self.shape, dtype.lanes)
        values = _as_numbers(value, "assignment")
        try:
            self.copyfrom(np.broadcast_to(values, shape))
        except ValueError:
            raise ValueError(f"assignment needs shape {shape}, got {values.shape}") from None

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array with no dimensions")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        if copy is False:
            raise ValueError("numpy gets a copy; np.from_dlpack(array) shares the memory")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.numpy(), str(self.dtype))

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device}>\n{self.numpy()!r}"

    __str__ = __repr__


_core.set_classes(ndarray=NDArray, numpy_bool=np.bool_)


def _rebuild(values: AnyArray, dtype: str) -> NDArray:
    element = as_dtype(dtype)
    shape = values.shape if element.lanes == 1 else values.shape[:-1]
    return empty(shape, element).copyfrom(values)


def _held_type(dtype: DType) -> np.dtype[Any]:
    """numpy's type for what an array holds: addresses are numbers here."""
    element: np.dtype[Any] = _ADDRESS if dtype.is_handle else dtype.numpy
    return element


@cache
def _dtype_of_numpy(element: np.dtype[Any]) -> DType:
    return as_dtype(element)


def _plain(values: AnyArray) -> AnyArray:
    """The same memory with a type that the buffer protocol knows."""
    if values.dtype.kind in "biufc" and values.dtype.isnative:
        return values
    return values.view(f"u{values.dtype.itemsize}")


def array(
    arr: Any,
    device: Device = cpu(0),  # noqa: B008
    mem_scope: str | None = None,
    *,
    ctx: Device | None = None,
) -> NDArray:
    """A new array with the values of ``arr``.

    Parameters
    ----------
    arr : array_like
        A numpy array, an NDArray, numbers or nested lists of numbers.
    device : Device
        Where the array lives.
    mem_scope : str, optional
        A kind of memory on the device.
    ctx : Device, optional
        The name of ``device`` in older releases.

    Returns
    -------
    NDArray
        Of the shape of ``arr``, and of its data type or that of `numpy.array`.
    """
    if ctx is not None:
        warn_renamed("array(ctx=...)", "array(device=...)")
        device = ctx
    if isinstance(arr, NDArray):
        return arr.copyto(device, mem_scope)
    if not isinstance(arr, np.ndarray):
        if hasattr(arr, "__dlpack__"):
            return from_dlpack(arr).copyto(device, mem_scope)
        arr = _as_numbers(arr, "array")
    element = arr.dtype
    if element.kind not in "biufV" or element.names:
        _fail_of_numbers("array", arr, element)
    result = _allocate(arr.shape, _dtype_of_numpy(element), device, mem_scope)
    if element.kind == "V" or not element.isnative:
        return result.copyfrom(arr)
    if arr.flags.c_contiguous:
        result._copy_from_buffer(arr)
    elif device.device_type == cpu().device_type and not any(np.mod(arr.strides, arr.itemsize)):
        result._copy_from_strided(arr)
    else:
        result.copyfrom(arr)
    return result


def empty(
    shape: Any,
    dtype: Any = "float32",
    device: Device = cpu(0),  # noqa: B008
    mem_scope: str | None = None,
    *,
    ctx: Device | None = None,
) -> NDArray:
    """A new array with undefined contents.

    Parameters
    ----------
    shape : int or tuple of int
        The extents.
    dtype : str
        The element type.
    device : Device
        Where the array lives.
    mem_scope : str, optional
        The memory of the device.
    ctx : Device, optional
        An older name of `device`.

    Returns
    -------
    NDArray
        The array.
    """
    if ctx is not None:
        warn_renamed("empty(ctx=...)", "empty(device=...)")
        device = ctx
    element = as_dtype(dtype)
    if element.is_void:
        raise ValueError("empty needs a dtype with elements, got void")
    return _allocate(_as_shape(shape), element, device, mem_scope)


def _allocate(
    shape: tuple[int, ...], element: DType, device: Device, mem_scope: str | None
) -> NDArray:
    if mem_scope and mem_scope != "global":
        raise ValueError(
            f"memory scope {mem_scope!r} is not available on {device}; there is only 'global'"
        )
    if not isinstance(device, DeviceBase):
        raise TypeError(
            f"a Device is needed, got {type(device).__name__} {device!r}; "
            'tvm.cpu() and tvm.device("cuda", 0) make one'
        )
    array: NDArray = _core.new_ndarray(shape, element, device)
    return array


def _as_shape(shape: Any) -> tuple[int, ...]:
    if type(shape) is not tuple:
        if isinstance(shape, (int, np.integer)):
            return (int(shape),)
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            raise TypeError(f"a shape is a tuple of integers, got {shape!r}")
    return tuple([extent if type(extent) is int else _as_extent(extent) for extent in shape])


def _as_extent(extent: Any) -> int:
    try:
        value = int(extent)
        if not isinstance(extent, (str, float, np.floating)) or value == extent:
            return value
    except (TypeError, ValueError):
        pass
    raise TypeError(f"a shape needs integers, got {extent!r}")


def _as_numbers(values: Any, who: str) -> AnyArray:
    """The values as a numpy array of numbers."""
    if isinstance(values, np.ndarray):
        array = values
    else:
        try:
            array = np.asarray(values)
        except (ValueError, TypeError) as error:
            raise type(error)(f"{who} needs numbers or nested lists of them: {error}") from None
    if array.dtype.kind not in "biufV" or array.dtype.names:
        _fail_of_numbers(who, values, array.dtype)
    return array


def _fail_of_numbers(who: str, values: Any, element: np.dtype[Any]) -> NoReturn:
    raise TypeError(
        f"{who} needs numbers, got {type(values).__name__} with elements of type {element}; "
        "numpy arrays, NDArrays, nested lists of numbers and objects with __dlpack__ will do"
    )


def from_dlpack(dltensor: Any) -> NDArray:
    """An array that shares the memory of a DLPack capsule or of an object with ``__dlpack__``.

    Of memory that may only be read the array is a copy, since kernels can write into every array;
    writing into it from Python is an error, for it would not reach the owner.

    Parameters
    ----------
    dltensor : object
        The capsule, or an array of another library.

    Returns
    -------
    NDArray
        The array.
    """
    api = getattr(type(dltensor), "__dlpack_c_exchange_api__", None)
    if api is not None and not getattr(dltensor, "requires_grad", False):
        shared: NDArray = _core.ndarray_from_exchange(api, dltensor)
        if shared is not None:
            return shared
    # the long way, which also explains why a tensor cannot be shared
    export = getattr(dltensor, "__dlpack__", None)
    if export is None:
        if type(dltensor).__name__ != "PyCapsule":
            raise AttributeError(
                f"from_dlpack needs __dlpack__ or a capsule, got {type(dltensor).__name__}"
            )
        capsule = dltensor
    else:
        try:
            capsule = export(max_version=(1, 0))
        except TypeError:  # a producer from before DLPack 1.0
            capsule = export()
    array: NDArray = _core.ndarray_from_dlpack(capsule)
    return array


def share_numpy(values: AnyArray) -> NDArray:
    """An array over the memory of a compact numpy array: nothing is copied.

    Of an array that may only be read, use the result for inputs only: kernels can write into it.
    """
    if not values.flags.c_contiguous:
        raise ValueError("share_numpy needs a compact array")
    array: NDArray = _core.ndarray_over_buffer(
        _plain(values), values.shape, _dtype_of_numpy(values.dtype)
    )
    return array


def numpyasarray(np_data: AnyArray) -> tuple[NDArray, tuple[int, ...]]:
    """The array over numpy's memory, which must be writable, and its shape."""
    if not np_data.flags.writeable:
        raise ValueError("numpyasarray needs a writable array; tvm.nd.array(values) copies it")
    return share_numpy(np_data), np_data.shape


__all__ = [
    "Device",
    "NDArray",
    "array",
    "cl",
    "cpu",
    "cuda",
    "device",
    "empty",
    "ext_dev",
    "from_dlpack",
    "gpu",
    "hexagon",
    "metal",
    "mtl",
    "numpyasarray",
    "opencl",
    "rocm",
    "share_numpy",
    "vpi",
    "vulkan",
    "webgpu",
]
