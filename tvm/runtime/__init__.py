"""What a compiled program needs: devices, arrays, functions, modules, parameters."""

from tvm._ffi import _core
from tvm.runtime import ndarray, packed_func
from tvm.runtime.device import device
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.object import Object
from tvm.runtime.packed_func import PackedFunc
