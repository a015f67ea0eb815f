"""Sums over GPUs that read each other's memory: what they read lies in memory that processes share.

a = alloc_tensor(s, "float16", 0, "global")    ->    a = alloc_tensor(s, "float16", 0, "ipc_memory")
allreduce(a, sum, in_group, b)                       cuda_ipc.custom_allreduce(a, strategy, b)
"""

from __future__ import annotations

from typing import Any

from tvm._ffi.registry import get_global_func
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.base import update_struct_info
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Call, ExternFunc, Function, PrimValue, ShapeExpr, StringImm, Var
from tvm.relax.expr_functor import ExprMutator, ExprVisitor
from tvm.relax.struct_info import ObjectStructInfo
from tvm.tir import IntImm, const

from .binding_rewriter import op_call
from .pass_kinds import whole_module_pass

_ALLOC_TENSOR = Op.get("relax.builtin.alloc_tensor")
_ALLOC_STORAGE = Op.get("relax.memory.alloc_storage")
_RESHAPE = Op.get("relax.reshape")
_SCOPE = "ipc_memory"
_REDUCE, _REDUCE_IN_PLACE = "runtime.disco.allreduce", "runtime.disco.cuda_ipc.custom_allreduce"
_ALLOC = "runtime.disco.cuda_ipc.alloc_storage"


def IPCAllReduceRewrite(allreduce_strategy: int) -> Pass:
    """Let sums over GPUs read each other's memory.

    A module stays as it is if the runtime has no function ``runtime.disco.cuda_ipc.custom_allreduce``.

    Parameters
    ----------
    allreduce_strategy : int
        How that function sums.

    Returns
    -------
    Pass
    """

    def run(mod: IRModule) -> IRModule:
        if get_global_func(_REDUCE_IN_PLACE, allow_missing=True) is None:
            return mod
        return _map_functions(mod, lambda: _Reducer(mod, allreduce_strategy))

    return whole_module_pass("IPCAllReduceRewrite", run)


def LowerGPUIPCAllocStorage() -> Pass:
    """Allocate memory of the scope ``ipc_memory`` by the function that makes it for several processes.

    Returns
    -------
    Pass
    """

    def run(mod: IRModule) -> IRModule:
        return _map_functions(mod, lambda: _Allocator(mod))

    return whole_module_pass("LowerGPUIPCAllocStorage", run)


def _map_functions(mod: IRModule, mutator: Any) -> IRModule:
    return mod.map_functions(
        lambda _, func: mutator().visit_expr(func) if isinstance(func, Function) else func
    )


class _Sums(ExprVisitor):
    """Sums over GPUs whose operand is allocated in the function, and the variables of these allocations."""

    def __init__(self) -> None:
        self.allocated: dict[Var, Var] = {}
        self.shared: dict[Var, None] = {}

    def visit_var_binding_(self, binding: Any) -> None:
        super().visit_var_binding_(binding)
        value = binding.value
        if isinstance(value, Call) and value.op is _ALLOC_TENSOR:
            self.allocated[binding.var] = binding.var
            return
        source = value.args[0] if isinstance(value, Call) and value.op is _RESHAPE else value
        if isinstance(source, Var) and source in self.allocated:
            self.allocated[binding.var] = self.allocated[source]
        elif _is_sum(value) and value.args[0] in self.allocated:
            self.shared[self.allocated[value.args[0]]] = None


def _is_sum(value: Any) -> bool:
    """Whether an expression sums a variable over GPUs; other reductions are left to their library."""
    if not isinstance(value, Call) or not isinstance(value.op, ExternFunc):
        return False
    if value.op.global_symbol != _REDUCE or not isinstance(value.args[0], Var):
        return False
    kind = value.args[1]
    first = kind.values[0] if isinstance(kind, ShapeExpr) else None
    return isinstance(first, IntImm) and first.value == 0


class _Reducer(ExprMutator):
    def __init__(self, mod: IRModule, strategy: int) -> None:
        super().__init__(mod)
        self.strategy = strategy
        self.sums = _Sums()

    def visit_function_(self, op: Function) -> Any:
        self.sums.visit_expr(op)
        return super().visit_function_(op)

    def visit_var_binding_(self, binding: Any) -> None:
        value = binding.value
        if binding.var in self.sums.shared:
            args = [*value.args[:3], StringImm(_SCOPE)]
            binding = binding.replace(value=_like(value, value.op, args))
        elif _is_sum(value) and value.args[0] in self.sums.allocated:
            args = [value.args[0], PrimValue(self.strategy), value.args[3]]
            binding = binding.replace(value=_like(value, ExternFunc(_REDUCE_IN_PLACE), args))
        super().visit_var_binding_(binding)


def _like(call: Call, op: Any, args: list[Any]) -> Call:
    new = Call(op, args, call.attrs, call.sinfo_args)
    update_struct_info(new, call.struct_info_)
    return new


class _Allocator(ExprMutator):
    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if call.op is _ALLOC_STORAGE and _has_scope(call.args[2]):
            return _storage(call.args[0], call.args[3])
        if call.op is _ALLOC_TENSOR and _has_scope(call.args[3]):
            return _tensor(call, self.builder_)
        return call


def _has_scope(scope: Any) -> bool:
    return isinstance(scope, StringImm) and scope.value == _SCOPE


def _storage(shape: Any, dtype: Any) -> Call:
    return Call(ExternFunc(_ALLOC), [shape, dtype], sinfo_args=[ObjectStructInfo()])


def _tensor(call: Call, builder: BlockBuilder) -> Call:
    shape, dtype = call.args[:2]
    assert isinstance(shape, ShapeExpr)
    size: Any = const(1, "int64")
    for dim in shape.values:
        size = size * dim
    storage = builder.emit(_storage(ShapeExpr([size]), dtype))
    args = (storage, PrimValue(0), shape, dtype)
    return op_call("relax.memory.alloc_tensor", *args, info=call.struct_info_)
