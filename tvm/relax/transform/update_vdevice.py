"""One of a module's devices is replaced by another, and tensors on it live there.

Tensor((2, 3), vdevice="cuda:0")    ->    Tensor((2, 3), vdevice="metal:0")
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.global_info import VDevice
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.expr import Call, Function
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo

from .pass_kinds import whole_module_pass


def is_same_device(a: Any, b: Any) -> bool:
    """Whether two devices of a module are one."""
    if a is None or b is None or a is b:
        return a is b
    same = a.vdevice_id == b.vdevice_id and a.memory_scope == b.memory_scope
    return same and str(a.target) == str(b.target)


class _Updater(ExprMutator):
    def __init__(self, mod: IRModule, old: VDevice, new: VDevice) -> None:
        super().__init__(mod)
        self.old, self.new = old, new

    def visit_function_(self, op: Function) -> Any:
        new = super().visit_function_(op)
        ret = self.visit_struct_info(new.ret_struct_info)
        if ret is new.ret_struct_info:
            return new
        return Function(new.params, new.body, ret, new.is_pure, new.attrs, new.span)

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        device = getattr(call.attrs, "dst_vdevice", None)
        if not isinstance(device, VDevice) or not is_same_device(device, self.old):
            return call
        attrs = call.attrs.replace(dst_vdevice=self.new)
        return Call(call.op, call.args, attrs, call.sinfo_args, call.span)

    def visit_struct_info(self, info: Any) -> Any:
        info = super().visit_struct_info(info)
        if isinstance(info, TupleStructInfo):
            return info.map_children(self.visit_struct_info)
        if isinstance(info, TensorStructInfo) and is_same_device(info.vdevice, self.old):
            return with_device(info, self.new)
        return info


def with_device(info: TensorStructInfo, device: VDevice) -> TensorStructInfo:
    """What is known of a tensor, on another device."""
    if info.shape is not None:
        return TensorStructInfo(info.shape, info.dtype, device, span=info.span)
    return TensorStructInfo(None, info.dtype, device, info.ndim, info.span)


def UpdateVDevice(new_vdevice: VDevice, index: int) -> Pass:
    """Replace one of a module's devices.

    Parameters
    ----------
    new_vdevice : VDevice
        The device in its place.
    index : int
        The number of the device among the module's.
    """

    def run(mod: IRModule) -> IRModule:
        devices = list(mod.global_infos.get("vdevice", ()))
        if not 0 <= index < len(devices):
            raise TVMError(f"UpdateVDevice requires a device of {len(devices)}, got index {index}")
        old, devices[index] = devices[index], new_vdevice
        new = mod.map_functions(
            lambda _, f: (
                _Updater(mod, old, new_vdevice).visit_expr(f) if isinstance(f, Function) else f
            )
        )
        new.update_global_info("vdevice", devices)
        return new

    return whole_module_pass("UpdateVDevice", run)


__all__ = ["UpdateVDevice", "is_same_device", "with_device"]
