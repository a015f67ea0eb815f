"""Modules of RPC sessions: where they are, and arguments that get there."""

from __future__ import annotations

from typing import Any

from tvm._ffi.registry import get_global_func
from tvm._ffi.runtime_ctypes import RPC_SESS_MASK, Device
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray
from tvm.runtime.packed_func import PackedFunc

_TYPE_KEY = "rpc"


def is_remote(module: Module) -> bool:
    """Whether a module is one of an RPC session."""
    return module.type_key == _TYPE_KEY


def global_function_beside(module: Module, name: str) -> PackedFunc:
    """The global function of the process that has the module."""
    if not is_remote(module):
        own: PackedFunc = get_global_func(name)  # type: ignore[assignment]
        return own
    session = get_global_func("rpc.SessionModuleOf")(module)
    found: PackedFunc = session.get_function(name)
    return found


def own_type_key(module: Module) -> str:
    """The kind of a module on its own machine."""
    return str(global_function_beside(module, "runtime.ModuleGetTypeKey")(module))


def remote_host(module: Module) -> Device | None:
    """The processor of the machine that has the module; None if it is this one."""
    if not is_remote(module):
        return None
    session = int(get_global_func("rpc.SessTableIndex")(module))
    return Device(Device.kDLCPU + (session + 1) * RPC_SESS_MASK, 0)


def own_device_type(device: Device) -> int:
    """The kind of a device on its own machine."""
    return int(device.device_type) % RPC_SESS_MASK


def on_machine_of(host: Device | None, value: Any) -> Any:
    """An array as functions of the machine ``host`` take it: those of this machine are sent there."""
    if host is None or not isinstance(value, NDArray) or value.device.device_type >= RPC_SESS_MASK:
        return value
    return value.copyto(host)
