"""Where tensors live follows from annotations and hints; what must move, moves.

y = hint_on_device(x, cuda(0)); z = add(y, w)    ->    x, w, z live on the device of cuda(0)
                                                       y = x, or to_vdevice(x) if x lives elsewhere
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.global_info import VDevice
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax import op
from tvm.relax.expr import (
    Call,
    Constant,
    Function,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relax.expr_functor import ExprMutator, ExprVisitor
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo

from .pass_kinds import whole_module_pass
from .update_vdevice import is_same_device, with_device


def _device_of(info: Any) -> VDevice | None:
    if isinstance(info, TensorStructInfo):
        return info.vdevice
    if isinstance(info, TupleStructInfo):
        found = [d for d in [_device_of(f) for f in info.fields] if d is not None]
        return found[0] if found else None
    return None


def find_vdevice(mod: IRModule, device: Any) -> VDevice:
    """The module's device for one of the runtime.

    Raises
    ------
    TVMError
        If the module has none.
    """
    for known in mod.global_infos.get("vdevice", ()):
        kind = known.target.get_target_device_type() if known.target is not None else None
        if kind == int(device.device_type) and known.vdevice_id == int(device.device_id):
            found: VDevice = known
            return found
    raise TVMError(
        f"the module has no vdevice for {device}",
        hint='name it among the module\'s global infos: {"vdevice": [VDevice("llvm")]}',
    )


class _Collector(ExprVisitor):
    """Variables whose device is stated, and which variables live together."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.stated: dict[Var, VDevice] = {}
        self.hinted: list[tuple[Var, VDevice]] = []  # what is hinted at, if nothing else is known
        self.together: dict[Var, dict[Var, None]] = {}

    def join(self, a: Var, b: Var) -> None:
        self.together.setdefault(a, {})[b] = None
        self.together.setdefault(b, {})[a] = None

    def visit_function_(self, op: Function) -> None:
        super().visit_function_(op)
        device = _device_of(op.ret_struct_info)
        result = op.body.body
        if device is not None and isinstance(result, Var):
            self.stated.setdefault(result, device)

    def visit_var_def_(self, var: Var) -> None:
        if (device := _device_of(var.struct_info_)) is not None:
            self.stated[var] = device

    def visit_var_binding_(self, binding: Any) -> None:
        super().visit_var_binding_(binding)
        var, value = binding.var, binding.value
        if isinstance(value, Call) and value.op is Op.get("relax.hint_on_device"):
            device = find_vdevice(self.mod, value.attrs.dst_vdevice)
            self.stated[var] = device
            if isinstance(value.args[0], Var):
                self.hinted.append((value.args[0], device))
            return
        if isinstance(value, Call) and value.op is Op.get("relax.to_vdevice"):
            self.stated[var] = value.attrs.dst_vdevice
            return
        for source in _tensors(value):
            self.join(var, source)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        super().visit_match_cast_(binding)
        for source in _tensors(binding.value):
            self.join(binding.var, source)


def _tensors(value: Any) -> list[Var]:
    """The variables of tensors that an expression reads directly."""
    if isinstance(value, Var):
        return (
            [value] if isinstance(value.struct_info_, (TensorStructInfo, TupleStructInfo)) else []
        )
    if isinstance(value, Tuple):
        return [v for f in value.fields for v in _tensors(f)]
    if isinstance(value, TupleGetItem):
        return _tensors(value.tuple_value)
    if isinstance(value, Call):
        return [v for arg in value.args for v in _tensors(arg)]
    return []


def _spread(collector: _Collector) -> dict[Var, VDevice]:
    """The device of each variable that one follows for; what is stated goes before hints."""
    known = dict(collector.stated)

    def spread(start: list[Var]) -> None:
        pending = start
        while pending:
            var = pending.pop()
            for other in collector.together.get(var, ()):
                if other not in known:
                    known[other] = known[var]
                    pending.append(other)

    spread(list(known))
    for var, device in collector.hinted:
        if var not in known:
            known[var] = device
            spread([var])
    return known


class _Realizer(ExprMutator):
    def __init__(self, mod: IRModule, known: dict[Var, VDevice]) -> None:
        super().__init__(mod)
        self.known = known

    def _placed(self, info: Any, device: VDevice) -> Any:
        if isinstance(info, TensorStructInfo):
            return info if info.vdevice is not None else with_device(info, device)
        if isinstance(info, TupleStructInfo):
            return TupleStructInfo([self._placed(f, device) for f in info.fields])
        return info

    def visit_var_def_(self, var: Var) -> Any:
        device = self.known.get(var)
        if device is None or var.struct_info_ is None:
            return super().visit_var_def_(var)
        info = self._placed(var.struct_info_, device)
        new = var if info is var.struct_info_ else type(var)(var.vid, info, var.span)
        self.set_var_remap(var.vid, new)
        return new

    visit_dataflow_var_def_ = visit_var_def_

    def visit_call_(self, op_: Call) -> Any:
        call = super().visit_call_(op_)
        if call.op is not Op.get("relax.hint_on_device"):
            return call
        device = find_vdevice(self.builder_.get(), call.attrs.dst_vdevice)
        data = call.args[0]
        if is_same_device(_device_of(data.struct_info), device):
            return data
        return op.to_vdevice(data, device)

    def reemit_binding(self, binding: Any, value: Any) -> None:
        device = self.known.get(binding.var)
        if device is not None and not isinstance(value, Constant):
            info = value.struct_info_
            if isinstance(value, Call) and _device_of(info) is None and info is not None:
                value = value.replace(struct_info_=self._placed(info, device))
        super().reemit_binding(binding, value)

    def visit_function_(self, op: Function) -> Any:
        new = super().visit_function_(op)
        if new is op:
            return op
        return Function(new.params, new.body, new.body.struct_info, new.is_pure, new.attrs)


def realize_vdevice(mod: IRModule) -> IRModule:
    """The module with the device of each tensor in its struct info."""
    functions = [f for f in mod.functions.values() if isinstance(f, Function)]
    known: dict[Var, VDevice] = {}
    for func in functions:
        collector = _Collector(mod)
        collector.visit_expr(func)
        known.update(_spread(collector))
    if not known:
        return mod
    return mod.map_functions(
        lambda _, f: _Realizer(mod, known).visit_expr(f) if isinstance(f, Function) else f
    )


def RealizeVDevice() -> Pass:
    """Give tensors the devices that follow from annotations and hints, and copy where they differ."""
    return whole_module_pass("RealizeVDevice", realize_vdevice)


__all__ = ["RealizeVDevice", "find_vdevice"]
