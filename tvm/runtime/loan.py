"""Tensors of other packages as arguments of packed functions.

    f(np_a, torch_b)        # what f writes into them stays there

The function sees the tensor's own memory if that is as compiled code wants it: compact, aligned to 64
bytes and writable. Otherwise it sees a copy, and what it writes is copied back after the call. A
tensor that may only be read is never written: a function that does so is told.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm._ffi import _core
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.ndarray import NDArray, empty, from_dlpack, share_numpy

_ALIGNMENT = 64


@dataclass(frozen=True)
class Loan:
    """A copy of a tensor that a function works on.

    Parameters
    ----------
    tensor : NDArray
        Over the memory of the tensor.
    copy : NDArray
        What the function gets.
    is_readonly : bool
        Whether the tensor may only be read.
    """

    tensor: NDArray
    copy: NDArray
    is_readonly: bool

    @staticmethod
    def of(value: Any, loans: list[Any]) -> NDArray:
        """The array for a function; what has to live as long as the call is appended to ``loans``."""
        tensor: NDArray = shared(value)
        is_readonly = _is_readonly(value, tensor)
        is_aligned = tensor.data_address % _ALIGNMENT == 0
        is_usable = is_aligned and _is_compact(tensor) and not is_readonly
        if is_usable or tensor.device.device_type != Device.kDLCPU:
            loans.append(tensor)
            return tensor
        # one copy for a tensor that is given twice, so that both arguments stay the same memory
        for loan in loans:
            if isinstance(loan, Loan) and loan._is_over(tensor):
                return loan.copy
        copy = empty(tensor.shape, tensor.dtype)
        tensor.copyto(copy)
        loans.append(Loan(tensor, copy, is_readonly))
        return copy

    def _is_over(self, other: NDArray) -> bool:
        mine = self.tensor
        same = (mine.data_address, mine.shape, mine.dtype, mine.strides)
        return same == (other.data_address, other.shape, other.dtype, other.strides)

    def give_back(self) -> None:
        """Copy what was written to the tensor."""
        if np.array_equal(_bytes(_compact(self.tensor)), _bytes(self.copy)):
            return
        if self.is_readonly:
            raise ValueError(
                "the function wrote into a tensor that may only be read, which stays as it was: "
                "give it a copy, array.copy()"
            )
        self.copy.copyto(self.tensor)


def shared(value: Any) -> Any:
    """An array over the memory of a tensor of another package; other values as they are."""
    if isinstance(value, NDArray) or not hasattr(value, "__dlpack__"):
        return value
    if not isinstance(value, np.ndarray):
        return from_dlpack(value)
    if value.dtype.kind not in "biufV" or value.dtype.names or not value.dtype.isnative:
        raise TypeError(f"compiled code takes numbers in the machine's order, got {value.dtype!r}")
    if value.flags.c_contiguous or not value.flags.writeable:
        return share_numpy(np.ascontiguousarray(value).reshape(value.shape))
    return from_dlpack(value)


def _is_readonly(value: Any, tensor: NDArray) -> bool:
    if isinstance(value, np.ndarray):
        return not value.flags.writeable
    return bool(getattr(tensor, "is_readonly", False))


def _is_compact(tensor: NDArray) -> bool:
    if tensor.strides is None:
        return True
    step = 1
    for extent, stride in zip(reversed(tensor.shape), reversed(tensor.strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def _compact(tensor: NDArray) -> NDArray:
    return tensor if _is_compact(tensor) else tensor.copyto(tensor.device)


def _bytes(tensor: NDArray) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The memory of a compact array."""
    count = (tensor.size * tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
    memory: Any = (ctypes.c_char * count).from_address(tensor.data_address)
    return np.frombuffer(memory, np.uint8) if count else np.empty(0, np.uint8)


_core.set_classes(loan=Loan)
