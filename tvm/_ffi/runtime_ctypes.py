"""The classic names of codes and of the structures at the C border."""

from __future__ import annotations

import ctypes
import json
from typing import Any, ClassVar

from tvm._ffi import _core
from tvm._ffi._core import DeviceBase
from tvm.support.dtype import DType as DataType
from tvm.support.rvalue import ObjectRValueRef

RPC_SESS_MASK = 128


class ArgTypeCode:
    """Codes of argument kinds."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    NULL = 4
    TVM_TYPE = 5
    DLDEVICE = 6
    DLTENSOR_HANDLE = 7
    OBJECT_HANDLE = 8
    MODULE_HANDLE = 9
    PACKED_FUNC_HANDLE = 10
    STR = 11
    BYTES = 12
    NDARRAY_HANDLE = 13
    OBJECT_RVALUE_REF_ARG = 14
    BOOL = 15
    EXT_BEGIN = 16


class DataTypeCode:
    """Codes of element kinds."""

    INT = 0
    UINT = 1
    FLOAT = 2
    HANDLE = 3
    BFLOAT = 4
    E4M3Float = 6
    E5M2Float = 7


class TVMByteArray(ctypes.Structure):
    """Bytes at the C border."""

    _fields_ = (("data", ctypes.POINTER(ctypes.c_byte)), ("size", ctypes.c_size_t))


class DLDevice(ctypes.Structure):
    """A device at the C border."""

    _fields_ = (("device_type", ctypes.c_int), ("device_id", ctypes.c_int))


class DLDataType(ctypes.Structure):
    """A data type at the C border."""

    _fields_ = (("type_code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class TVMArray(ctypes.Structure):
    """A DLTensor, to which the ``handle`` of an array points."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


TVMArrayHandle = ctypes.POINTER(TVMArray)


class Device(DeviceBase):
    """Where arrays live and code runs: a kind of device and a number."""

    __slots__ = ()

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16

    DEVICE_TYPE_TO_NAME: ClassVar[dict[int, str]] = {
        1: "cpu",
        2: "cuda",
        3: "cuda_host",
        4: "opencl",
        7: "vulkan",
        8: "metal",
        9: "vpi",
        10: "rocm",
        11: "rocm_host",
        12: "ext_dev",
        13: "cuda_managed",
        14: "oneapi",
        15: "webgpu",
        16: "hexagon",
    }
    DEVICE_NAME_TO_TYPE: ClassVar[dict[str, int]] = {
        "llvm": 1,
        "stackvm": 1,
        "cpu": 1,
        "c": 1,
        "test": 1,
        "hybrid": 1,
        "composite": 1,
        "cuda": 2,
        "gpu": 2,
        "nvptx": 2,
        "cl": 4,
        "opencl": 4,
        "sdaccel": 4,
        "aocl": 4,
        "aocl_sw_emu": 4,
        "vulkan": 7,
        "metal": 8,
        "mtl": 8,
        "vpi": 9,
        "rocm": 10,
        "ext_dev": 12,
        "oneapi": 14,
        "webgpu": 15,
        "hexagon": 16,
    }
    # their names of old releases
    MASK2STR = DEVICE_TYPE_TO_NAME
    STR2MASK = DEVICE_NAME_TO_TYPE

    def __str__(self) -> str:
        kind = self.device_type
        if kind >= RPC_SESS_MASK:
            session, kind = kind // RPC_SESS_MASK - 1, kind % RPC_SESS_MASK
            return f"remote[{session}]:{self._name(kind)}({self.device_id})"
        return f"{self._name(kind)}({self.device_id})"

    __repr__ = __str__

    @classmethod
    def _name(cls, kind: int) -> str:
        return cls.DEVICE_TYPE_TO_NAME.get(kind, f"device_type_{kind}")

    def _attribute(self, kind: int) -> Any:
        get = _core.get_global("runtime.GetDeviceAttr")
        assert get is not None
        return get(self.device_type, self.device_id, kind)

    def _number(self, kind: int) -> int | None:
        number: int | None = self._attribute(kind)
        return number

    def _text(self, kind: int) -> str | None:
        text: str | None = self._attribute(kind)
        return text

    @property
    def exist(self) -> bool:
        """Whether the runtime can use this device."""
        return bool(self._attribute(0))

    @property
    def max_threads_per_block(self) -> int | None:
        """Threads in a block, at most."""
        return self._number(1)

    @property
    def warp_size(self) -> int | None:
        """Threads that run in step."""
        return self._number(2)

    @property
    def max_shared_memory_per_block(self) -> int | None:
        """Bytes of memory that a block shares, at most."""
        return self._number(3)

    @property
    def compute_version(self) -> str | None:
        """The version of the device's instruction set."""
        return self._text(4)

    @property
    def device_name(self) -> str | None:
        """What its maker calls it."""
        return self._text(5)

    @property
    def max_clock_rate(self) -> int | None:
        """In kHz."""
        return self._number(6)

    @property
    def multi_processor_count(self) -> int | None:
        """How many processors it has."""
        return self._number(7)

    @property
    def max_thread_dimensions(self) -> list[int] | None:
        """The largest extents of a block."""
        extents = self._attribute(8)
        return None if extents is None else json.loads(extents)

    @property
    def api_version(self) -> int | None:
        """The version of the interface to the device."""
        return self._number(11)

    @property
    def driver_version(self) -> str | None:
        """The version of its driver."""
        return self._text(12)

    @property
    def l2_cache_size_bytes(self) -> int | None:
        """The size of its second-level cache."""
        return self._number(13)

    @property
    def total_global_memory(self) -> int | None:
        """Its memory in bytes."""
        return self._number(14)

    @property
    def available_global_memory(self) -> int | None:
        """Its free memory in bytes."""
        return self._number(15)

    def texture_spatial_limit(self) -> int:
        """The largest extent of an image in texture memory, which no device of this runtime has."""
        raise ValueError(f"{self} has no texture memory")

    def create_raw_stream(self) -> ctypes.c_void_p | None:
        """A new stream of work; None where all work is done at once."""
        return _core.create_stream(self)

    def free_raw_stream(self, stream: ctypes.c_void_p | None) -> None:
        """Give a stream back."""
        _core.free_stream(self, stream)

    def set_raw_stream(self, stream: ctypes.c_void_p | None) -> None:
        """Let this thread's work on the device go to the stream."""
        _core.set_stream(self, stream)

    def sync(self, stream: ctypes.c_void_p | None = None) -> None:
        """Wait until all work on the device, or of one stream, is done."""
        _core.synchronize(self, stream)


_core.set_classes(device=Device, rvalue=ObjectRValueRef)

__all__ = ["ArgTypeCode", "DataType", "DataTypeCode", "Device", "RPC_SESS_MASK"]
