"""Operators that the virtual machine has functions for become calls of them.

s = shape_of(x)                  ->    s = "vm.builtin.shape_of"(x)
y = invoke_closure(f, (x,))      ->    y = call_builtin_with_ctx("vm.builtin.invoke_closure", (f, x))
m = memory.alloc_storage(...)    ->    m = vm.alloc_storage(...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.base import StructInfo, update_struct_info
from tvm.relax.expr import Call, DataTypeImm, ExternFunc, Function, PrimValue, Tuple, Var
from tvm.target import Target

from .binding_rewriter import BindingRewriter, function_pass, op_call


def _packed(name: str) -> Callable[[Call], Call]:
    """A call of a packed function with the same arguments, those of tuples taken apart."""

    def lower(call: Call) -> Call:
        info = call.struct_info
        return _with_info(Call(ExternFunc(name), call.args, None, [info]), info)

    return lower


def _call_tir_dyn(call: Call) -> Call:
    info = call.struct_info
    args = [call.args[0], *_fields(call.args[1])]
    return _with_info(Call(ExternFunc("vm.builtin.call_tir_dyn"), args, None, [info]), info)


def _to_device(call: Call) -> Call:
    info, device = call.struct_info, call.attrs.dst_vdevice
    numbers = _device_numbers(device)
    args = [call.args[0], *[PrimValue(number) for number in numbers]]
    return _with_info(Call(ExternFunc("vm.builtin.to_device"), args, None, [info]), info)


def _device_numbers(device: Any) -> tuple[int, int]:
    target = Target(device.target)
    return int(target.get_target_device_type()), int(device.vdevice_id)


def _make_closure(call: Call) -> Call:
    info = call.struct_info
    args = [call.args[0], *_fields(call.args[1])]
    return _with_info(Call(ExternFunc("vm.builtin.make_closure"), args, None, [info]), info)


def _invoke_closure(call: Call) -> Call:
    args = Tuple([call.args[0], *_fields(call.args[1])])
    callee = ExternFunc("vm.builtin.invoke_closure")
    op = Op.get("relax.call_builtin_with_ctx")
    return _with_info(Call(op, [callee, args], None, call.sinfo_args), call.struct_info_)


def _alloc_storage(call: Call) -> Call:
    size, device, scope, _ = call.args  # the size is in bytes, whatever lives there
    element = DataTypeImm("uint8")
    return op_call("relax.vm.alloc_storage", size, device, element, scope, info=call.struct_info_)


def _same_args(name: str) -> Callable[[Call], Call]:
    return lambda call: op_call(name, *call.args, info=call.struct_info_)


_LOWERED: Mapping[str, Callable[[Call], Call]] = {
    "relax.reshape": _packed("vm.builtin.reshape"),
    "relax.shape_of": _packed("vm.builtin.shape_of"),
    "relax.tensor_to_shape": _packed("vm.builtin.tensor_to_shape"),
    "relax.memory.ensure_zero_offset": _packed("vm.builtin.ensure_zero_offset"),
    "relax.vm.call_tir_dyn": _call_tir_dyn,
    "relax.to_vdevice": _to_device,
    "relax.make_closure": _make_closure,
    "relax.invoke_closure": _invoke_closure,
    "relax.invoke_pure_closure": _invoke_closure,
    "relax.memory.alloc_storage": _alloc_storage,
    "relax.memory.alloc_tensor": _same_args("relax.vm.alloc_tensor"),
    "relax.memory.kill_storage": _same_args("relax.vm.kill_object"),
    "relax.memory.kill_tensor": _same_args("relax.vm.kill_object"),
}


class _Builtins(BindingRewriter):
    def value(self, value: RelayExpr, var: Var) -> RelayExpr:
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return value
        lower = _LOWERED.get(value.op.name)
        if lower is None and (name := value.op.get_attr("FCallPacked")) is not None:
            lower = _packed(name)
        if lower is None and (rule := value.op.get_attr("FLowerBuiltin")) is not None:
            return rule(self, value)  # type: ignore[no-any-return]
        return value if lower is None else lower(value)


def _fields(value: RelayExpr) -> list[RelayExpr]:
    return list(value.fields) if isinstance(value, Tuple) else [value]


def _with_info(call: Call, info: StructInfo | None) -> Call:
    update_struct_info(call, info)
    return call


def lower_runtime_builtin(func: Function, mod: IRModule) -> Function:
    """The function with calls of the machine's functions."""
    return _Builtins(mod).function(func)


def LowerRuntimeBuiltin() -> Pass:
    """Let operators be calls of the virtual machine's functions."""
    return function_pass("LowerRuntimeBuiltin", lower_runtime_builtin)


VMBuiltinLower = LowerRuntimeBuiltin
