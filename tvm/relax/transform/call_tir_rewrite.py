"""Calls that return tensors become calls that write into tensors allocated before.

y = call_tir(f, (x,), Tensor((n, 4)))    ->    alloc = builtin.alloc_tensor((n, 4), "float32", 0)
                                               f(x, alloc)
                                               y = alloc
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.global_info import VDevice
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.base import StructInfo, update_struct_info
from tvm.relax.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataTypeImm,
    Function,
    PrimValue,
    StringImm,
    Tuple,
    Var,
)
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo

from .binding_rewriter import VOID, BindingRewriter, function_pass, op_call
from .update_vdevice import is_same_device

# calls of functions that write into tensors which are allocated for them
DESTINATION_PASSING = {"relax.call_tir", "relax.call_tir_inplace", "relax.call_dps_packed"}


class _Destinations(BindingRewriter):
    def block(self, block: BindingBlock) -> BindingBlock:
        new = super().block(block)
        if new is not block and isinstance(new, DataflowBlock):
            raise TVMError("CallTIRRewrite requires plain blocks: run ToNonDataflow first")
        return new

    def value(self, value: RelayExpr, var: Var) -> RelayExpr:
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return value
        if value.op.name not in DESTINATION_PASSING:
            return value
        callee, given = value.args[:2]
        inputs = list(given.fields) if isinstance(given, Tuple) else [given]
        info = value.sinfo_args[0]
        infos = list(info.fields) if isinstance(info, TupleStructInfo) else [info]
        places = value.attrs.inplace_indices if value.op.name == "relax.call_tir_inplace" else ()
        written = {i: inputs[int(place)] for i, place in enumerate(places) if int(place) >= 0}
        results = [
            written[i] if i in written else self.emit(_new_tensor(one, self.mod), "alloc")
            for i, one in enumerate(infos)
        ]
        fresh = [result for i, result in enumerate(results) if i not in written]
        self._call(callee, [*inputs, *fresh], value.args[2:])
        return results[0] if not isinstance(info, TupleStructInfo) else Tuple(results)

    def _call(self, callee: RelayExpr, tensors: list[RelayExpr], numbers: Any) -> None:
        if numbers:
            self.emit(
                op_call("relax.vm.call_tir_dyn", callee, Tuple([*tensors, numbers[0]]), info=VOID)
            )
            return
        call = Call(callee, tensors)
        update_struct_info(call, VOID)
        self.emit(call)


def _device_index(mod: IRModule, device: VDevice | None) -> int:
    """Which of the machine's devices: they are those of the module, in its order."""
    if device is None:
        return 0
    known = mod.global_infos.get("vdevice", ())
    found = [i for i, other in enumerate(known) if is_same_device(other, device)]
    return found[0] if found else int(device.vdevice_id)


def _new_tensor(info: StructInfo, mod: IRModule) -> Call:
    if not isinstance(info, TensorStructInfo) or info.shape is None:
        raise TVMError(f"a call that returns a new tensor requires its shape, got {info}")
    if info.dtype.is_void:
        raise TVMError(f"a call that returns a new tensor requires its dtype, got {info}")
    device = PrimValue(_device_index(mod, info.vdevice))
    args = (info.shape, DataTypeImm(info.dtype), device, StringImm("global"))
    return op_call("relax.builtin.alloc_tensor", *args, info=info)


def call_tir_rewrite(func: Function, mod: IRModule) -> Function:
    """The function with calls that write into tensors."""
    return _Destinations(mod).function(func)


def CallTIRRewrite() -> Pass:
    """Let calls of loop programs and packed functions write into tensors that are allocated before."""
    return function_pass("CallTIRRewrite", call_tir_rewrite)
