"""Functions of grouped calls become one loop program each.

fused_add_exp(x, y): lv = call_tir(add, (x, y)); gv = call_tir(exp, (lv,))
    ->    prim_func fused_add_exp(x, y, out): lv is a buffer of its own, both loop nests one after the other
"""

from __future__ import annotations

from typing import Any

from tvm import tir
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.ir.visitor import Rewriter
from tvm.relax.expr import (
    Call,
    Function,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    relax_functions,
)
from tvm.relax.expr_functor import ExprMutator
from tvm.relax.op.base import call_tir, call_tir_inplace
from tvm.relax.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.support import UniqueNames
from tvm.tir import PrimFunc
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.stmt_functor import Substituter, renew_defs

from .dead_code import remove_unused_functions
from .pass_kinds import whole_module_pass


class _UniqueBlocks(Rewriter):
    """Gives blocks names of their own."""

    def __init__(self) -> None:
        self.names = UniqueNames()

    def visit_block(self, block: Any) -> Any:
        name = self.names.fresh(block.name_hint)
        new = self.rewrite_children(block)
        return new if name == block.name_hint else new.replace(name_hint=name)


class _Fuser:
    """Builds the loop program of one function."""

    def __init__(self, mod: IRModule, func: Function) -> None:
        self.mod = mod
        self.func = func
        self.buffers: dict[Any, Any] = {}  # of variables: a buffer, or a list of such
        self.params: list[Any] = []
        self.numbers: list[Any] = []  # parameters that are numbers
        self.buffer_map: dict[Any, Buffer] = {}
        self.bodies: list[Any] = []
        self.allocated: list[Buffer] = []
        self.names = UniqueNames()
        self.inplace: list[int] = []

    def build(self) -> PrimFunc:
        for param in self.func.params:
            self.buffers[param] = self._parameter(param.name_hint, param.struct_info)
        bindings = [b for block in self.func.body.blocks for b in block.bindings]
        results = self._results(bindings)
        for binding in bindings:
            self._binding(binding.var, binding.value, results)
        for buffer in results.get("order", []):
            self._add(buffer)
        body = tir.SeqStmt(tuple(self.bodies)) if len(self.bodies) != 1 else self.bodies[0]
        block = tir.Block([], [], [], "root", body, alloc_buffers=self.allocated)
        root = tir.BlockRealize((), tir.const(True, "bool"), block)
        attrs = {
            k: v for k, v in self.func.attrs.items() if k not in ("Primitive", "global_symbol")
        }
        attrs["tir.noalias"] = True
        made = PrimFunc([*self.params, *self.numbers], root, None, self.buffer_map, attrs)
        return made.with_body(_UniqueBlocks().visit(made.body))

    def _parameter(self, name: str, info: StructInfo) -> Any:
        if isinstance(info, TensorStructInfo):
            buffer = self._buffer(name, info)
            self._add(buffer)
            return buffer
        if isinstance(info, TupleStructInfo):
            return [self._parameter(f"{name}_{i}", f) for i, f in enumerate(info.fields)]
        if isinstance(info, ShapeStructInfo):
            values = [v for v in info.values or () if isinstance(v, tir.Var)]
            self.numbers += [v for v in values if not any([v is n for n in self.numbers])]
            return info
        if isinstance(info, PrimStructInfo) and isinstance(info.value, tir.Var):
            self.numbers.append(info.value)
            return info
        raise TVMError(f"a fused function cannot take {info}")

    def _buffer(self, name: str, info: StructInfo) -> Buffer:
        dims = info.dimensions if isinstance(info, TensorStructInfo) else None
        if dims is None or not isinstance(info, TensorStructInfo):
            raise TVMError(f"a fused function requires tensors of known shape, got {info}")
        return decl_buffer(dims, info.dtype, self.names.fresh(name))

    def _add(self, buffer: Buffer) -> None:
        param = tir.Var(f"p_{buffer.name}", "handle")
        self.params.append(param)
        self.buffer_map[param] = buffer

    def _results(self, bindings: Any) -> dict[Any, Any]:
        """The buffers of variables that are returned, in the order of the result."""
        result = self.func.body.body
        values = {b.var: b.value for b in bindings}
        parts = list(result.fields) if isinstance(result, Tuple) else [result]
        found: dict[Any, Any] = {"order": []}
        for part in parts:
            while isinstance(values.get(part), Var):
                part = values[part]
            if isinstance(values.get(part), Tuple):
                inner = list(values[part].fields)
            else:
                inner = [part]
            for var in inner:
                info = var.struct_info
                infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
                made = [self._buffer(f"{var.name_hint}_out", i) for i in infos]
                found[var] = made if isinstance(info, TupleStructInfo) else made[0]
                found["order"] += made
        return found

    def _binding(self, var: Var, value: RelayExpr, results: dict[Any, Any]) -> None:
        if isinstance(value, Var):
            self.buffers[var] = self.buffers[value]
            return
        if isinstance(value, TupleGetItem):
            self.buffers[var] = self.buffers[value.tuple_value][value.index]
            return
        if isinstance(value, Tuple):
            self.buffers[var] = [self.buffers[f] for f in value.fields]
            return
        if not isinstance(value, Call) or not _is_call_tir(value):
            raise TVMError(f"a fused function consists of calls of loop programs, got {value}")
        outputs = results.get(var)
        if outputs is None:
            outputs = self._intermediate(var)
        self.buffers[var] = outputs
        self._inline(value, outputs if isinstance(outputs, list) else [outputs])

    def _intermediate(self, var: Var) -> Any:
        info = var.struct_info
        infos = info.fields if isinstance(info, TupleStructInfo) else (info,)
        made = [self._buffer(var.name_hint, i) for i in infos]
        self.allocated += made
        return made if isinstance(info, TupleStructInfo) else made[0]

    def _arguments(self, arg: RelayExpr) -> list[Any]:
        if isinstance(arg, Tuple):
            return [b for field in arg.fields for b in self._arguments(field)]
        found = self.buffers[arg]
        return list(found) if isinstance(found, list) else [found]

    def _inline(self, call: Call, outputs: list[Buffer]) -> None:
        callee = self.mod[call.args[0]]
        prim = renew_defs(callee)
        inputs = self._arguments(call.args[1])
        shape = call.args[2] if len(call.args) > 2 else None
        numbers = shape.values if isinstance(shape, ShapeExpr) else ()
        given = [*inputs, *outputs]
        values: dict[Any, Any] = {}
        buffers: dict[Buffer, Buffer] = {}
        rest = []
        for param in prim.params:
            if param in prim.buffer_map:
                declared = prim.buffer_map[param]
                target = given.pop(0)
                buffers[declared] = target
                values[declared.data] = target.data
                for old, new in zip(declared.shape, target.shape, strict=True):
                    if isinstance(old, tir.Var):
                        values.setdefault(old, new)
            else:
                rest.append(param)
        for param, number in zip(rest, numbers, strict=False):
            values[param] = number
        substituter = Substituter(values)
        substituter._buffers.update(buffers)
        body = substituter.visit(prim.body)
        if isinstance(body, tir.BlockRealize) and not body.block.iter_vars:
            if body.block.name_hint == "root":
                self.allocated += list(body.block.alloc_buffers)
                body = body.block.body
        self.bodies.append(body)


class _Caller(ExprMutator):
    """Calls loop programs where functions of groups were called."""

    def __init__(
        self, mod: IRModule, fused: dict[GlobalVar, PrimFunc], funcs: dict[Any, Function]
    ) -> None:
        super().__init__(mod)
        self.fused = fused
        self.funcs = funcs

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if not isinstance(call.op, GlobalVar) or call.op not in self.fused:
            return call
        func = self.funcs[call.op]
        tensors: list[RelayExpr] = []
        numbers: list[Any] = []
        for arg in call.args:
            self._flatten(arg, tensors, numbers)
        info = op.struct_info_ or func.ret_struct_info
        return call_tir(call.op, Tuple(tensors), _flat_infos(info), numbers or None)

    def _flatten(self, arg: Any, tensors: list[RelayExpr], numbers: list[Any]) -> None:
        info = arg.struct_info
        if isinstance(arg, Tuple):
            for field in arg.fields:
                self._flatten(field, tensors, numbers)
        elif isinstance(info, TupleStructInfo):
            for i in range(len(info.fields)):
                self._flatten(self.builder_.emit(arg[i]), tensors, numbers)
        elif isinstance(info, ShapeStructInfo):
            values = arg.values if isinstance(arg, ShapeExpr) else info.values
            numbers.extend(values or ())
        elif isinstance(info, PrimStructInfo):
            numbers.append(info.value)
        else:
            tensors.append(arg)


def _flat_infos(info: StructInfo) -> list[TensorStructInfo]:
    if isinstance(info, TupleStructInfo):
        return [x for f in info.fields for x in _flat_infos(f)]
    if not isinstance(info, TensorStructInfo):
        raise TVMError(f"a fused function cannot return {info}")
    return [info]


def fuse_tir(mod: IRModule) -> IRModule:
    """The module with a loop program for each function of grouped calls."""
    groups = {
        g: f
        for g, f in relax_functions(mod).items()
        if f.attrs.get("Primitive") and not f.attrs.get("Codegen") and _is_all_tir(f)
    }
    if not groups:
        return mod
    fused = {g: _Fuser(mod, f).build() for g, f in groups.items()}
    functions: dict[Any, Any] = {}
    caller = _Caller(mod, fused, groups)
    for gvar, func in mod.functions.items():
        if gvar in fused:
            functions[gvar] = fused[gvar]
        elif isinstance(func, Function):
            functions[gvar] = caller.visit_expr(func)
        else:
            functions[gvar] = func
    for gvar in fused:
        gvar.struct_info_ = None
    return remove_unused_functions(mod.with_functions(functions))


def _is_call_tir(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name in ("relax.call_tir", "relax.call_tir_inplace")


def _is_all_tir(func: Function) -> bool:
    return all(
        [
            not isinstance(b.value, Call) or _is_call_tir(b.value)
            for block in func.body.blocks
            for b in block.bindings
        ]
    )


def FuseTIR() -> Pass:
    """Let each function with the attribute ``Primitive`` be one loop program."""
    return whole_module_pass("FuseTIR", fuse_tir)


__all__ = ["FuseTIR", "call_tir_inplace", "fuse_tir"]
