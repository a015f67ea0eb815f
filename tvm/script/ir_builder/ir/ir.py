"""What ``I`` has for modules that are being built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.function import BaseFunc
from tvm.ir.global_info import DummyGlobalInfo, VDevice
from tvm.tir.expr import Range

from ..base import IRBuilder
from .frame import IRModuleFrame


def ir_module() -> IRModuleFrame:
    """Start a module."""
    return IRModuleFrame()


def current_ir_module() -> IRModuleFrame:
    """The module that is being built."""
    frame = IRBuilder.current().find_frame(IRModuleFrame)
    if frame is None:
        raise ValueError("this requires a module around it: with I.ir_module(): ...")
    return frame


def decl_function(func_name: str, func_signature: BaseFunc | None = None) -> GlobalVar:
    """Announce a function, so that others can call it.

    Parameters
    ----------
    func_name : str
    func_signature : BaseFunc, optional
        A function of the same type.
    """
    frame = current_ir_module()
    if func_name in frame.global_var_map:
        raise ValueError(f"function {func_name} is declared already")
    var = frame.global_var_map[func_name] = GlobalVar(func_name)
    frame.functions[var] = None
    del func_signature  # calls do not depend on the callee's type here
    return var


def def_function(func_name: str, func: BaseFunc) -> None:
    """Define a function that was declared."""
    frame = current_ir_module()
    var = frame.global_var_map.get(func_name)
    if var is None:
        raise ValueError(f"function {func_name} requires a declaration before its definition")
    if frame.functions[var] is not None:
        raise ValueError(f"function {func_name} is defined already")
    frame.functions[var] = func


def module_attrs(attrs: Mapping[str, Any], allow_overwrite: bool = False) -> None:
    """Attributes of the module."""
    if not IRBuilder.is_in_scope():
        return  # the body of the class, which Python runs before its decorator reads it
    frame = current_ir_module()
    if frame.attrs and not allow_overwrite:
        raise ValueError(f"the module has attributes already: {frame.attrs}")
    frame.attrs.update(attrs)


def module_get_attrs() -> dict[str, Any]:
    """The module's attributes."""
    return dict(current_ir_module().attrs)


def module_get_attr(attr_key: str) -> Any:
    """One attribute of the module, or None."""
    return current_ir_module().attrs.get(attr_key)


def module_set_attr(attr_key: str, attr_value: Any, allow_overwrite: bool = False) -> None:
    """Set one attribute of the module."""
    attrs = current_ir_module().attrs
    if attr_key in attrs and not allow_overwrite:
        raise ValueError(f"the module has the attribute {attr_key} already: {attrs[attr_key]}")
    attrs[attr_key] = attr_value


def module_global_infos(global_infos: Mapping[str, Sequence[Any]]) -> None:
    """What functions of the module may refer to, by kind."""
    if not IRBuilder.is_in_scope():
        return  # the body of the class, which Python runs before its decorator reads it
    frame = current_ir_module()
    if frame.global_infos:
        raise ValueError(f"the module has global infos already: {list(frame.global_infos)}")
    frame.global_infos.update({name: list(infos) for name, infos in global_infos.items()})


def dummy_global_info() -> DummyGlobalInfo:
    """A fact without content."""
    return DummyGlobalInfo()


def vdevice(target: Any = None, vdevice_id: int = 0, memory_scope: str = "global") -> VDevice:
    """A device that tensors are assigned to."""
    return VDevice(target, vdevice_id, memory_scope)


def lookup_vdevice(target_kind: str | None = None, device_index: int = -1) -> VDevice:
    """The module's device of a kind of target, by its number among those."""
    if not IRBuilder.is_in_scope():
        return VDevice()  # the body of the class, which Python runs before its decorator reads it
    devices = current_ir_module().global_infos.get("vdevice", [])
    if target_kind is not None and target_kind not in ("vdevice", ""):
        devices = [d for d in devices if d.target is not None and d.target.kind.name == target_kind]
    if not devices or device_index >= len(devices):
        raise ValueError(f"the module has no device {target_kind}:{device_index}")
    found: VDevice = devices[max(device_index, 0)]
    return found


__all__ = [
    "GlobalVar", "Range", "current_ir_module", "decl_function", "def_function",
    "dummy_global_info", "ir_module", "lookup_vdevice", "module_attrs", "module_get_attr",
    "module_get_attrs", "module_global_infos", "module_set_attr", "vdevice",
]  # fmt: skip
