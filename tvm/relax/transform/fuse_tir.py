"""Functions of grouped calls become one loop program each.

fused_add_exp(x, y): lv = call_tir(add, (x, y)); gv = call_tir(exp, (lv,))
    ->    prim_func fused_add_exp(x, y, out): lv is a buffer of its own, both loop nests one after the other
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import tir
from tvm.arith import Analyzer, IntervalSet
from tvm.arith.interval import union
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
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
from tvm.tir.stmt import seq
from tvm.tir.stmt_functor import Substituter, renew_defs

from .canonicalize_bindings import canonicalize
from .dead_code import remove_unused_functions
from .pass_kinds import whole_module_pass


class _OwnBlocks(Rewriter):
    """Gives blocks names of their own, and each buffer one region that it is read or written in."""

    def __init__(self) -> None:
        self.names = UniqueNames()
        self.analyzer = Analyzer()

    def visit_block(self, block: Any) -> Any:
        name = self.names.fresh(block.name_hint)
        new = self.rewrite_children(block)
        reads, writes = self._united(new.reads), self._united(new.writes)
        if name == block.name_hint and reads is new.reads and writes is new.writes:
            return new
        return new.replace(name_hint=name, reads=reads, writes=writes)

    def _united(self, regions: tuple[Any, ...]) -> tuple[Any, ...]:
        found: dict[Buffer, Any] = {}
        for region in regions:
            known = found.get(region.buffer)
            found[region.buffer] = region if known is None else self._union(known, region)
        return regions if len(found) == len(regions) else tuple(found.values())

    def _union(self, a: Any, b: Any) -> Any:
        ranges = []
        for x, y in zip(a.region, b.region, strict=True):
            hull = union(self.analyzer, _interval(x), _interval(y))
            extent = self.analyzer.simplify(hull.max_value - hull.min_value + 1)
            ranges.append(tir.Range.from_min_extent(hull.min_value, extent))
        return tir.BufferRegion(a.buffer, tuple(ranges))


def _interval(part: Any) -> IntervalSet:
    return IntervalSet(part.min, part.min + part.extent - 1)


@dataclass(eq=False)
class _Tensor:
    """A tensor of a fused function: a buffer once a loop program uses it."""

    name: str
    info: TensorStructInfo
    path: tuple[int, ...] | None = None  # of inputs: which parameter, and which fields of it
    buffer: Buffer | None = None


@dataclass(eq=False)
class _Fused:
    """A loop program in the place of a function, and how it is called."""

    func: PrimFunc
    inputs: list[tuple[int, ...]]  # parameters, and fields of parameters, that are its tensors
    inplace: list[int]  # for each result the input that it is written over, or -1


class _Fuser:
    """Builds the loop program of one function."""

    def __init__(self, mod: IRModule, func: Function) -> None:
        self.mod = mod
        self.func = func
        self.values: dict[Any, Any] = {}  # of variables: a tensor, or a list of such
        self.inputs: list[_Tensor] = []
        self.numbers: list[Any] = []  # parameters that are numbers
        self.bodies: list[Any] = []
        self.allocated: list[Buffer] = []
        self.targets: dict[str, Any] = {}  # of the loop programs that are for one
        self.names = UniqueNames()

    def build(self) -> _Fused:
        for i, param in enumerate(self.func.params):
            self.values[param] = self._parameter(param.name_hint, param.struct_info, (i,))
        for block in self.func.body.blocks:
            for binding in block.bindings:
                self.values[binding.var] = self._value(binding.value)
        results = self._flat(self._value(self.func.body.body))
        if len({id(result) for result in results}) < len(results):
            raise TVMError("a fused function cannot return a tensor twice")
        inputs = [t for t in self.inputs if t.buffer is not None or len(t.path or ()) == 1]
        inplace = [inputs.index(r) if r in inputs else -1 for r in results]
        outputs = [r for r in results if r not in inputs]
        for tensor in [*inputs, *outputs]:
            self._buffer(tensor)
        func = self._assembled([t.buffer for t in [*inputs, *outputs] if t.buffer is not None])
        return _Fused(func, [t.path for t in inputs if t.path is not None], inplace)

    def _assembled(self, buffers: list[Buffer]) -> PrimFunc:
        own = [b for b in self.allocated if b not in buffers]
        block = tir.Block([], [], [], "root", seq(self.bodies), alloc_buffers=own)
        root = tir.BlockRealize((), tir.const(True, "bool"), block)
        buffer_map = {tir.Var(f"p_{buffer.name}", "handle"): buffer for buffer in buffers}
        attrs = {
            k: v for k, v in self.func.attrs.items() if k not in ("Primitive", "global_symbol")
        }
        attrs["tir.noalias"] = True
        if len(self.targets) > 1:
            raise TVMError(
                f"a fused function is for one target, got loop programs for {', '.join(self.targets)}"
            )
        if self.targets:
            (attrs["target"],) = self.targets.values()
        made = PrimFunc([*buffer_map, *self.numbers], root, None, buffer_map, attrs)
        return made.with_body(_OwnBlocks().visit(made.body))

    def _parameter(self, name: str, info: StructInfo, path: tuple[int, ...]) -> Any:
        if isinstance(info, TensorStructInfo):
            self.inputs.append(_Tensor(name, info, path))
            return self.inputs[-1]
        if isinstance(info, TupleStructInfo):
            return [
                self._parameter(f"{name}_{i}", f, (*path, i)) for i, f in enumerate(info.fields)
            ]
        if isinstance(info, ShapeStructInfo):
            values = [v for v in info.values or () if isinstance(v, tir.Var)]
            self.numbers += [v for v in values if not any([v is n for n in self.numbers])]
            return info
        if isinstance(info, PrimStructInfo) and isinstance(info.value, tir.Var):
            self.numbers.append(info.value)
            return info
        raise TVMError(f"a fused function cannot take {info}")

    def _buffer(self, tensor: _Tensor, declared: Buffer | None = None) -> Buffer:
        """The tensor's buffer, as a loop program declares it."""
        if tensor.buffer is None:
            tensor.buffer = self._new_buffer(tensor, declared)
        elif declared is not None and not structural_equal(
            tensor.buffer.axis_separators, declared.axis_separators
        ):
            raise TVMError(
                f"Inconsistent buffers {tensor.buffer.name} and {declared.name} mapped to the same "
                f"relax var: {tensor.name}, axis separators {tensor.buffer.axis_separators} and "
                f"{declared.axis_separators}"
            )
        return tensor.buffer

    def _new_buffer(self, tensor: _Tensor, declared: Buffer | None) -> Buffer:
        dims = tensor.info.dimensions
        if dims is None:
            raise TVMError(f"a fused function requires tensors of known shape, got {tensor.info}")
        name = self.names.fresh(tensor.name)
        if declared is None:
            return decl_buffer(dims, tensor.info.dtype, name)
        offset = declared.elem_offset if isinstance(declared.elem_offset, tir.IntImm) else None
        return decl_buffer(
            dims, tensor.info.dtype, name, elem_offset=offset, scope=declared.scope(),
            axis_separators=declared.axis_separators,
        )  # fmt: skip

    def _value(self, value: RelayExpr) -> Any:
        if isinstance(value, Var):
            return self.values[value]
        if isinstance(value, TupleGetItem):
            return self._value(value.tuple_value)[value.index]
        if isinstance(value, Tuple):
            return [self._value(field) for field in value.fields]
        if not isinstance(value, Call) or not _is_call_tir(value):
            raise TVMError(f"a fused function consists of calls of loop programs, got {value}")
        return self._call(value)

    def _flat(self, value: Any) -> list[_Tensor]:
        return (
            [t for part in value for t in self._flat(part)] if isinstance(value, list) else [value]
        )

    def _call(self, call: Call) -> Any:
        callee = call.args[0]
        prim = self.mod[callee] if isinstance(callee, GlobalVar) else None
        if not isinstance(prim, PrimFunc):
            raise TVMError(f"a fused function consists of calls of loop programs, got {call}")
        prim = renew_defs(prim)
        if (target := prim.attrs.get("target")) is not None:
            self.targets.setdefault(str(target), target)
        inputs = self._flat(self._value(call.args[1]))
        info = call.sinfo_args[0]
        infos = _flat_infos(info)
        places = call.attrs.inplace_indices if _is_inplace(call) else [-1] * len(infos)
        name = (
            prim.buffer_map[prim.params[-1]].name if prim.params[-1] in prim.buffer_map else "out"
        )
        outputs = [
            inputs[int(place)] if int(place) >= 0 else _Tensor(f"{name}_intermediate", one)
            for one, place in zip(infos, places, strict=True)
        ]
        fresh = [t for t in outputs if t.buffer is None and t not in inputs]
        shape = call.args[2] if len(call.args) > 2 else None
        numbers = shape.values if isinstance(shape, ShapeExpr) else ()
        self._inline(prim, [*inputs, *fresh], numbers)
        self.allocated += [self._buffer(t) for t in fresh]
        return outputs if isinstance(info, TupleStructInfo) else outputs[0]

    def _inline(self, prim: PrimFunc, given: list[_Tensor], numbers: Sequence[Any]) -> None:
        values: dict[Any, Any] = {}
        buffers: dict[Buffer, Buffer] = {}
        tensors = [p for p in prim.params if p in prim.buffer_map]
        for param, tensor in zip(tensors, given, strict=True):
            declared = prim.buffer_map[param]
            target = self._buffer(tensor, declared)
            buffers[declared] = target
            values[declared.data] = target.data
            for old, new in zip(declared.shape, target.shape, strict=True):
                if isinstance(old, tir.Var):
                    values.setdefault(old, new)
        rest = [p for p in prim.params if p not in prim.buffer_map]
        values.update(zip(rest, numbers, strict=False))
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
        self, mod: IRModule, fused: dict[GlobalVar, _Fused], funcs: dict[Any, Function]
    ) -> None:
        super().__init__(mod)
        self.fused = fused
        self.funcs = funcs

    def visit_call_(self, op: Call) -> Any:
        call = super().visit_call_(op)
        if not isinstance(call.op, GlobalVar) or call.op not in self.fused:
            return call
        func, fused = self.funcs[call.op], self.fused[call.op]
        fields: dict[tuple[int, ...], RelayExpr] = {(i,): arg for i, arg in enumerate(call.args)}
        tensors = [self._field(path, fields) for path in fused.inputs]
        numbers = [n for arg in call.args for n in _numbers_of(arg)]
        info = op.struct_info_ or func.ret_struct_info
        out: Any = _flat_infos(info) if isinstance(info, TupleStructInfo) else info
        if any([place >= 0 for place in fused.inplace]):
            return call_tir_inplace(call.op, Tuple(tensors), fused.inplace, out, numbers or None)
        return call_tir(call.op, Tuple(tensors), out, numbers or None)

    def _field(self, path: tuple[int, ...], known: dict[tuple[int, ...], RelayExpr]) -> RelayExpr:
        if path not in known:
            whole = self._field(path[:-1], known)
            known[path] = (
                whole.fields[path[-1]]
                if isinstance(whole, Tuple)
                else self.builder_.emit(TupleGetItem(whole, path[-1]))
            )
        return known[path]


def _numbers_of(arg: RelayExpr) -> Sequence[Any]:
    """The numbers that an argument of a fused function stands for."""
    info = arg.struct_info
    if isinstance(info, ShapeStructInfo):
        return info.values or ()
    return [info.value] if isinstance(info, PrimStructInfo) else ()


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
            functions[gvar] = fused[gvar].func
        elif isinstance(func, Function):
            new = caller.visit_expr(func)
            functions[gvar] = func if new is func else canonicalize(new, mod)
        else:
            functions[gvar] = func
    for gvar in fused:
        gvar.struct_info_ = None
    return remove_unused_functions(mod.with_functions(functions))


def _is_call_tir(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name in ("relax.call_tir", "relax.call_tir_inplace")


def _is_inplace(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.name == "relax.call_tir_inplace"


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
