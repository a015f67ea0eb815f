"""Functions that tests of the virtual machine call, and checks of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm._ffi.registry import register_func
from tvm._ffi.runtime_ctypes import Device
from tvm.runtime.ndarray import NDArray, array
from tvm.runtime.relax_vm import VirtualMachine


@register_func("test.vm.move", override=True)
def move(src: Any) -> Any:
    """The value itself."""
    return src


@register_func("test.vm.add", override=True)
def add(a: NDArray, b: NDArray) -> NDArray:
    """The sum of two arrays."""
    return array(a.numpy() + b.numpy())


@register_func("test.vm.mul", override=True)
def mul(a: NDArray, b: NDArray) -> NDArray:
    """The product of two arrays, element by element."""
    return array(a.numpy() * b.numpy())


@register_func("test.vm.equal_zero", override=True)
def equal_zero(a: NDArray) -> NDArray:
    """Whether elements are zero."""
    return array(np.asarray(a.numpy() == 0))


@register_func("test.vm.subtract_one", override=True)
def subtract_one(a: NDArray) -> NDArray:
    """The array less one."""
    return array(np.asarray(np.subtract(a.numpy(), 1)))


@register_func("test.vm.identity", override=True)
def identity_packed(a: NDArray, b: NDArray) -> None:
    """Copy the first array into the second."""
    b[:] = array(a.numpy())


@register_func("test.vm.tile", override=True)
def tile_packed(a: NDArray, b: NDArray) -> None:
    """Two copies of the first array, one behind the other, into the second."""
    b[:] = array(np.tile(a.numpy(), (1, 2)))


@register_func("test.vm.add_scalar", override=True)
def add_scalar(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@register_func("test.vm.get_device_id", override=True)
def get_device_id(device: Device) -> int:
    """A device's number."""
    return device.device_id


def check_saved_func(vm: VirtualMachine, func_name: str, *inputs: Any) -> Any:
    """Call a function directly and as a saved call, and check that both give the same.

    Parameters
    ----------
    vm : VirtualMachine
        The machine.
    func_name : str
        The function.
    inputs : values
        Its arguments.

    Returns
    -------
    value
        The result.
    """
    result = vm[func_name](*inputs)
    saved_name = f"{func_name}_saved"
    vm.save_function(func_name, saved_name, *inputs)
    _require_same(vm[saved_name](), result)
    return result


def _require_same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, NDArray):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-7, atol=1e-7)
        return
    assert len(found) == len(wanted)
    for part, wanted_part in zip(found, wanted, strict=True):
        _require_same(part, wanted_part)


@register_func("test.vm.check_if_defined", override=True)
def check_if_defined(obj: Any) -> bool:
    """Whether a value is not None."""
    return obj is not None
