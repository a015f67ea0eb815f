"""Arrays that compiled code works on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tvm._ffi import _core
from tvm._ffi._core import DeviceBase, NDArrayBase
from tvm._ffi.runtime_ctypes import Device
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
        return self.device  # type: ignore[no-any-return]

    def same_as(self, other: object) -> bool:
        """Whether both are the same native array."""
        return isinstance(other, NDArray) and self.handle.value == other.handle.value

    def numpy(self) -> AnyArray:
        """A copy as a numpy array."""
        dtype = self.dtype
        shape = self.shape if dtype.lanes == 1 else (*self.shape, dtype.lanes)
        result = np.empty(shape, _held_type(dtype))
        if self.strides is not None:
            result[...] = self._strided_view()
        else:
            self._copy_to_buffer(_plain(result))
        return result

    def asnumpy(self) -> AnyArray:
        """An older name of :meth:`numpy`."""
        warn_renamed("NDArray.asnumpy", "NDArray.numpy")
        return self.numpy()

    def _strided_view(self) -> AnyArray:
        if self.device.device_type != Device.kDLCPU:
            raise ValueError("an array with strides can only be read on the CPU")
        assert self.strides is not None
        item = _held_type(self.dtype)
        span = 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))
        flat = _core.ndarray_over(self, self.data_address, (span,), self.dtype).numpy()
        steps = tuple(s * item.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            if copy is False:
                raise BufferError(
                    f"__dlpack__ cannot go from {self.device} to {dl_device} uncopied"
                )
            return self.copyto(Device(*dl_device)).to_dlpack()
        return (self.copyto(self.device) if copy else self).to_dlpack()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device.device_type, self.device.device_id

    def copyfrom(self, source_array: Any) -> NDArray:
        """Copy from an array of the same shape; elements of Python and numpy arrays are converted."""
        if isinstance(source_array, NDArray):
            source_array.copyto(self)
            return self
        if self.strides is not None:
            raise ValueError("copyfrom needs a compact target array, got one with strides")
        dtype = self.dtype
        shape = self.shape if dtype.lanes == 1 else (*self.shape, dtype.lanes)
        source = np.asarray(source_array)
        if source.shape != shape:
            raise ValueError(f"copyfrom needs shape {shape}, got {source.shape}")
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
            if self.strides is not None:
                return target.copyfrom(self.numpy())
            return self._copyto(target)  # type: ignore[no-any-return]
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
        return super()._create_view(tuple(shape), element, relative_byte_offset)  # type: ignore[no-any-return]

    def __setitem__(self, index: Any, value: Any) -> None:
        """Assign all of the array: ``a[:] = value``; ``a[()]`` and ``a[...]`` mean the same."""
        if not (index is Ellipsis or index == () or index == slice(None)):
            raise ValueError("assignment to a part of an array is not supported, only a[:] = value")
        if isinstance(value, NDArrayBase):
            if isinstance(value, NDArray) and not value.same_as(self):
                value.copyto(self)
            return
        self.copyfrom(np.broadcast_to(np.asarray(value), self.shape))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array with no dimensions")
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.numpy(), str(self.dtype))

    def __repr__(self) -> str:
        return f"<tvm.nd.NDArray shape={self.shape}, {self.device}>\n{self.numpy()!r}"

    __str__ = __repr__


_core.set_classes(ndarray=NDArray, numpy_bool=np.bool_)


def _rebuild(values: AnyArray, dtype: str) -> NDArray:
    return empty(values.shape, dtype).copyfrom(values)


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
    """
    if ctx is not None:
        warn_renamed("array(ctx=...)", "array(device=...)")
        device = ctx
    if isinstance(arr, NDArray):
        return arr.copyto(device, mem_scope)
    if not isinstance(arr, np.ndarray):
        arr = np.asarray(arr)
    element = arr.dtype
    if element.kind not in "biufV" or element.names:
        raise TypeError(f"array needs numbers, got elements of type {element}")
    result = empty(arr.shape, _dtype_of_numpy(element), device, mem_scope)
    if element.kind == "V" or not (element.isnative and arr.flags.c_contiguous):
        return result.copyfrom(arr)
    result._copy_from_buffer(arr)
    return result


def empty(
    shape: Any,
    dtype: Any = "float32",
    device: Device = cpu(0),  # noqa: B008
    mem_scope: str | None = None,
    *,
    ctx: Device | None = None,
) -> NDArray:
    """A new array with undefined contents; ``ctx`` is an older name of ``device``."""
    if ctx is not None:
        warn_renamed("empty(ctx=...)", "empty(device=...)")
        device = ctx
    if mem_scope not in (None, "", "global"):
        raise ValueError(f"memory scope {mem_scope!r} is not available on {device}")
    extents = (int(shape),) if isinstance(shape, int) else tuple([int(n) for n in shape])
    return _core.new_ndarray(extents, as_dtype(dtype), device)  # type: ignore[no-any-return]


def from_dlpack(dltensor: Any) -> NDArray:
    """An array that shares the memory of a DLPack capsule or of an object with ``__dlpack__``."""
    api = getattr(type(dltensor), "__dlpack_c_exchange_api__", None)
    if api is not None and not getattr(dltensor, "requires_grad", False):
        shared = _core.ndarray_from_exchange(api, dltensor)
        if shared is not None:
            return shared  # type: ignore[no-any-return]
    # the long way, which also explains why a tensor cannot be shared
    export = getattr(dltensor, "__dlpack__", None)
    if export is None and type(dltensor).__name__ != "PyCapsule":
        raise AttributeError(f"from_dlpack needs __dlpack__ or a capsule, got {type(dltensor)}")
    return _core.ndarray_from_dlpack(export() if export else dltensor)  # type: ignore[no-any-return]


def share_numpy(values: AnyArray) -> NDArray:
    """An array over the memory of a compact, writable or read-only numpy array: nothing is copied."""
    if not values.flags.c_contiguous:
        raise ValueError("share_numpy needs a compact array")
    return _core.ndarray_over_buffer(  # type: ignore[no-any-return]
        _plain(values), values.shape, _dtype_of_numpy(values.dtype)
    )


def numpyasarray(np_data: AnyArray) -> tuple[NDArray, tuple[int, ...]]:
    """The array over numpy's memory, and its shape."""
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
