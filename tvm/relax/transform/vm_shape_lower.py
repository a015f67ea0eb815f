"""Symbolic variables are kept in a heap of integers; what is known of arguments is checked at run time.

def f(x: Tensor((n, 2)), y: Tensor((n + 1,))):     heap = "vm.builtin.alloc_shape_heap"(2)   # n, n + 1
    return reshape(x, (n * 2,))                    "vm.builtin.check_tensor_info"(x, 2, "float32")
                                             ->    "vm.builtin.match_shape"(x, heap, 2, STORE, 0, EQUAL, 2)
                                                   shape_func(heap)                          # heap[1] = heap[0] + 1
                                                   "vm.builtin.match_shape"(y, heap, 1, EQUAL_TO_LOAD, 1)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tvm.arith import detect_linear_equation
from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, PrimExpr, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.transform import ModulePass, Pass, PassInfo
from tvm.relax.analysis.variables import bindings_of
from tvm.relax.base import StructInfo, update_struct_info
from tvm.relax.expr import (
    BindingBlock,
    Call,
    Constant,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.relax.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.support.dtype import dtype
from tvm.support.naming import UniqueNames
from tvm.tir import PrimFunc, floordiv
from tvm.tir import Var as TirVar
from tvm.tir.analysis import undefined_vars
from tvm.tir.buffer import decl_buffer
from tvm.tir.expr import BufferLoad, Cast, FloatImm, IntImm
from tvm.tir.stmt import BufferStore, Evaluate, SeqStmt, Stmt
from tvm.tir.stmt_functor import substitute

from .binding_rewriter import VOID, BindingRewriter, op_call, packed_call

_EQUAL_TO_IMMEDIATE, _STORE, _NO_OP, _EQUAL_TO_LOAD = range(4)
_IMMEDIATE, _LOAD = range(2)


@dataclass
class _Slot:
    """A place of the heap."""

    expr: PrimExpr
    index: int
    waits_for: set[int] = field(default_factory=set)  # slots of variables that are not known yet
    is_known: bool = False


class _Slots:
    """The places of the expressions of a function, equal ones together."""

    def __init__(self) -> None:
        self.all: list[_Slot] = []
        self._by_hash: dict[int, list[_Slot]] = {}

    def find(self, expr: PrimExpr) -> _Slot:
        for slot in self._by_hash.get(structural_hash(expr), ()):
            if structural_equal(slot.expr, expr):
                return slot
        raise TVMError(f"{expr} has no value: its variables are defined nowhere")

    def add(self, expr: PrimExpr) -> None:
        if isinstance(expr, (IntImm, FloatImm)):
            return
        same = self._by_hash.setdefault(structural_hash(expr), [])
        if not any([structural_equal(slot.expr, expr) for slot in same]):
            slot = _Slot(expr, len(self.all))
            same.append(slot)
            self.all.append(slot)

    def link(self) -> None:
        """Note which variables each expression waits for."""
        for slot in list(self.all):
            if not isinstance(slot.expr, TirVar):
                variables = undefined_vars(Evaluate(slot.expr), [])
                for var in variables:
                    self.add(var)
                slot.waits_for = {self.find(var).index for var in variables}

    def of_struct_info(self, info: StructInfo | None) -> None:
        if isinstance(info, TensorStructInfo):
            if info.shape is not None:
                self.of_expr(info.shape)
        elif isinstance(info, ShapeStructInfo):
            for value in info.values or ():
                self.add(value)
        elif isinstance(info, PrimStructInfo) and info.value is not None:
            self.add(info.value)
        elif isinstance(info, TupleStructInfo):
            for part in info.fields:
                self.of_struct_info(part)

    def of_expr(self, expr: RelayExpr) -> None:
        if isinstance(expr, ShapeExpr):
            for value in expr.values:
                self.add(value)
        elif isinstance(expr, PrimValue):
            self.add(expr.value)
        elif isinstance(expr, Tuple):
            for part in expr.fields:
                self.of_expr(part)
        elif isinstance(expr, Call):
            for arg in expr.args:
                self.of_expr(arg)
        elif isinstance(expr, If):
            self.of_expr(expr.true_branch)
            self.of_expr(expr.false_branch)
        elif isinstance(expr, SeqExpr):
            for block in expr.blocks:
                for binding in block.bindings:
                    self.of_expr(binding.value)
                    if isinstance(binding, MatchCast):
                        self.of_struct_info(binding.struct_info)
            self.of_expr(expr.body)


@dataclass
class _Match:
    """What an input's dimensions, or a number, must be."""

    value: RelayExpr
    pattern: Sequence[PrimExpr]
    context: str


class _ShapeLowering(BindingRewriter):
    def __init__(
        self, mod: IRModule, name: str, names: UniqueNames, prefix: str, has_context: bool
    ) -> None:
        super().__init__(mod)
        self.name = name
        self.names = names
        self.prefix = prefix
        self.has_context = has_context
        self.slots = _Slots()
        self.added: dict[GlobalVar, PrimFunc] = {}
        self.killed: dict[RelayExpr, None] = {}

    def function(self, func: Function) -> Function:
        kill = Op.get("relax.vm.kill_object")
        values = [b.value for b in bindings_of(func)]
        calls = [v for v in values if isinstance(v, Call) and v.op is kill]
        self.killed = {call.args[0]: None for call in calls}
        for param in func.params:
            self.slots.of_struct_info(param.struct_info_)
        self.slots.of_expr(func.body)
        self.slots.of_struct_info(func.ret_struct_info)
        self.slots.link()
        head = self._head(func)
        body = self.sequence(func.body)
        tail = self._tail(func, body.body)
        blocks = [head, *body.blocks, *([tail] if tail.bindings else [])]
        new = SeqExpr(blocks, body.body)
        update_struct_info(new, func.body.struct_info_)
        return func.replace(body=new)

    def _head(self, func: Function) -> BindingBlock:
        """Allocation of the heap, checks of parameters."""
        outer, self._bindings = self._bindings, []
        count = len(self.slots.all)
        if count:
            info = TensorStructInfo(None, "int64", ndim=1)
            args = Tuple([PrimValue(count)])
            allocation = op_call(
                "relax.call_builtin_with_ctx",
                ExternFunc("vm.builtin.alloc_shape_heap"),
                args,
                info=info,
            )
            allocation = allocation.replace(sinfo_args=(info,))
        else:
            allocation = op_call("relax.null_value")
        self.heap = self.emit(allocation, "shape_heap")
        inputs = int(func.attrs.get("num_input", len(func.params)))
        matches: list[_Match] = []
        for i, param in enumerate(func.params):
            context = self._context(f"param[{i}], param={param.name_hint}", param.struct_info)
            info = param.struct_info
            matches += self._check(info, param, context, always=True, dynamic_only=i >= inputs)
        self._run(matches)
        bindings, self._bindings = self._bindings, outer
        return BindingBlock(bindings)

    def _tail(self, func: Function, result: RelayExpr) -> BindingBlock:
        """Checks of the result."""
        outer, self._bindings = self._bindings, []
        context = self._context("return", func.ret_struct_info)
        self._run(self._check(func.ret_struct_info, result, context))
        bindings, self._bindings = self._bindings, outer
        return BindingBlock(bindings)

    def _context(self, place: str, info: StructInfo | None) -> str:
        if not self.has_context:
            return ""
        return f"ErrorContext(fn={self.name}, loc={place}, annotation={info}) "

    # ---- checks

    def _check(
        self,
        info: StructInfo | None,
        value: RelayExpr,
        context: str,
        always: bool = False,
        dynamic_only: bool = False,
    ) -> list[_Match]:
        """Put checks that a value is what is said of it; what its dimensions must match."""
        found = value.struct_info_
        if not always and info is not None and found is not None and info.is_base_of(found):
            return []
        match info:
            case TensorStructInfo():
                rank = TensorStructInfo(None, info.dtype, info.vdevice, info.ndim)
                if always or not rank.is_base_of(found):
                    kind = DataTypeImm(info.dtype)
                    self.emit(
                        packed_call("vm.builtin.check_tensor_info", value, info.ndim, kind, context)
                    )
                dims = info.dimensions
                return self._match(value, dims, context, dynamic_only)
            case ShapeStructInfo():
                if always or not ShapeStructInfo(ndim=info.ndim).is_base_of(found):
                    self.emit(packed_call("vm.builtin.check_shape_info", value, info.ndim, context))
                return self._match(value, info.values, context, dynamic_only)
            case PrimStructInfo():
                if always or not PrimStructInfo(info.dtype).is_base_of(found):
                    kind = DataTypeImm(info.dtype)
                    self.emit(packed_call("vm.builtin.check_prim_value_info", value, kind, context))
                dims = None if info.value is None else (info.value,)
                return self._match(value, dims, context, dynamic_only)
            case FuncStructInfo():
                self.emit(packed_call("vm.builtin.check_func_info", value, context))
                return []
            case TupleStructInfo():
                return self._check_tuple(info, value, context, always, dynamic_only)
        return []

    def _check_tuple(
        self,
        info: TupleStructInfo,
        value: RelayExpr,
        context: str,
        always: bool,
        dynamic_only: bool,
    ) -> list[_Match]:
        found = value.struct_info_
        is_known = isinstance(found, TupleStructInfo) and len(found.fields) == len(info.fields)
        if always or not is_known:
            count = len(info.fields)
            self.emit(packed_call("vm.builtin.check_tuple_info", value, count, context))
        matches: list[_Match] = []
        for i, part in enumerate(info.fields):
            item = self._item(value, i)
            matches += self._check(part, item, context, always, dynamic_only)
        return matches

    def _item(self, value: RelayExpr, index: int) -> RelayExpr:
        if isinstance(value, Tuple):
            return value.fields[index]
        if isinstance(value.struct_info_, TupleStructInfo):
            return self.emit(TupleGetItem(value, index), "item")
        item = packed_call("vm.builtin.tuple_getitem", value, index, info=ObjectStructInfo())
        return self.emit(item, "item")

    def _match(
        self,
        value: RelayExpr,
        pattern: Sequence[PrimExpr] | None,
        context: str,
        dynamic_only: bool,
    ) -> list[_Match]:
        if pattern is None:
            return []
        if dynamic_only and all([isinstance(dim, IntImm) for dim in pattern]):
            return []
        return [_Match(value, pattern, context)]

    def _run(self, matches: list[_Match]) -> None:
        """Put matches: those of variables, the computation of what they define, the others."""
        waiting = [match for match in matches if self._put_match(match, self._code)]
        self._put_computation()
        while any([self._solved(match) for match in waiting]):
            self._put_computation()
        for match in waiting:
            self._put_match(match, self._last_code)

    def _put_match(self, match: _Match, code: Callable[[PrimExpr], Sequence[int]]) -> bool:
        """Put a match; whether a part of it waits for values that are not known yet."""
        codes = [number for dim in match.pattern for number in code(dim)]
        operations = codes[::2]
        if any([operation != _NO_OP for operation in operations]):
            count = (
                [] if isinstance(match.value.struct_info_, PrimStructInfo) else [len(operations)]
            )
            name = "vm.builtin.match_shape" if count else "vm.builtin.match_prim_value"
            args = [self.heap, *count, *codes, match.context]
            self.emit(packed_call(name, match.value, *args))
        return _NO_OP in operations

    def _solved(self, match: _Match) -> bool:
        """Put what finds variables that an input tells in a sum or product, as ``(n * 4,)`` tells n."""
        found: list[tuple[_Slot, PrimExpr]] = []

        def code(dim: PrimExpr) -> Sequence[int]:
            solution = self._solution(dim)
            if solution is None:
                return _NO_OP, 0
            solution[0].is_known = True
            found.append(solution)
            return _STORE, solution[0].index

        self._put_match(match, code)
        if found:
            self._put_stores(found)
        return bool(found)

    def _solution(self, dim: PrimExpr) -> tuple[_Slot, PrimExpr] | None:
        """The one variable that is not known, in terms of itself, which holds what ``dim`` is."""
        if isinstance(dim, (IntImm, TirVar)) or self.slots.find(dim).is_known:
            return None
        slots = [self.slots.all[index] for index in self.slots.find(dim).waits_for]
        unknown = [slot for slot in slots if not slot.is_known]
        if len(unknown) != 1 or not isinstance(unknown[0].expr, TirVar):
            return None
        variable = unknown[0].expr
        terms = detect_linear_equation(dim, [variable])
        if not terms or not isinstance(terms[0], IntImm) or terms[0].value == 0:
            return None
        return unknown[0], floordiv(variable - terms[1], terms[0])

    def _last_code(self, dim: PrimExpr) -> list[int]:
        codes = self._code(dim)
        if codes[0] == _NO_OP:
            raise TVMError(
                f"{self.name}: {dim} has no value where it is checked",
                hint="its variables are known where a parameter has them as dimensions of their own, "
                "or in sums and multiples like n * 4",
            )
        return codes

    def _code(self, dim: PrimExpr) -> list[int]:
        if isinstance(dim, IntImm):
            return [_EQUAL_TO_IMMEDIATE, int(dim.value)]
        slot = self.slots.find(dim)
        if slot.is_known:
            return [_EQUAL_TO_LOAD, slot.index]
        if isinstance(dim, TirVar):
            slot.is_known = True
            return [_STORE, slot.index]
        return [_NO_OP, 0]

    def _put_computation(self) -> None:
        """Put the call of a loop program that computes what is known by now."""
        known = {slot.index for slot in self.slots.all if slot.is_known}
        ready = [
            s for s in self.slots.all if not s.is_known and s.waits_for and s.waits_for <= known
        ]
        # without variables, an expression is ready at once
        ready += [
            s for s in self.slots.all
            if not s.is_known and not s.waits_for and not isinstance(s.expr, TirVar)
        ]  # fmt: skip
        for slot in ready:
            slot.is_known = True
        if ready:
            self._put_stores([(slot, slot.expr) for slot in ready])

    def _put_stores(self, values: Sequence[tuple[_Slot, PrimExpr]]) -> None:
        """Put the call of a loop program that stores expressions to the heap."""
        heap = decl_buffer((IntImm("int64", len(self.slots.all)),), "int64", "H")
        loads = {
            slot.expr: BufferLoad(heap, [IntImm("int64", slot.index)])
            for slot in self.slots.all
            if isinstance(slot.expr, TirVar)
        }
        stores: list[Stmt] = []
        for slot, expr in values:
            value = substitute(expr, loads)
            value = value if value.dtype == "int64" else Cast(dtype("int64"), value)
            stores.append(BufferStore(heap, value, [IntImm("int64", slot.index)]))
        handle = TirVar("var_H", "handle")
        body = stores[0] if len(stores) == 1 else SeqStmt(tuple(stores))
        gvar = GlobalVar(self.names.fresh(f"{self.prefix}shape_func"))
        func = PrimFunc([handle], body, buffer_map={handle: heap})
        self.added[gvar] = func.with_attr("tir.is_host_func", True)
        call = Call(gvar, [self.heap])
        update_struct_info(call, VOID)
        self.emit(call)

    # ---- bodies

    def match_cast(self, binding: MatchCast) -> None:
        value = self.argument(binding.value)
        if not isinstance(value, (Var, Constant, Tuple)):
            value = self.emit(value, "value")
        elif isinstance(value, Var) and value in self.killed:
            # variables of checks share the registers of their values, which end here
            copy = packed_call("vm.builtin.copy", value, info=value.struct_info)
            value = self.emit(copy, value.name_hint)
        info = binding.struct_info
        place = f"ErrorContext(match_cast, struct_info={info}) " if self.has_context else ""
        self._run(self._check(info, value, place))
        # it still defines symbolic variables; code generation takes it for a plain binding
        self.put(MatchCast(binding.var, value, info))

    def argument(self, arg: RelayExpr) -> RelayExpr:
        if isinstance(arg, Tuple):
            fields = [self.argument(part) for part in arg.fields]
            is_same = all([a is b for a, b in zip(fields, arg.fields, strict=True)])
            return arg if is_same else Tuple(fields)
        if isinstance(arg, ShapeExpr):
            return self._shape(arg)
        if isinstance(arg, PrimValue) and not isinstance(arg.value, (IntImm, FloatImm)):
            load = self._load(arg.value)
            call = packed_call("vm.builtin.make_prim_value", self.heap, *load, info=arg.struct_info)
            return self.emit(call.replace(sinfo_args=(PrimStructInfo(arg.value.dtype),)), "prim")
        return arg

    def _shape(self, shape: ShapeExpr) -> RelayExpr:
        if all([isinstance(dim, IntImm) for dim in shape.values]):
            return shape
        codes = [code for dim in shape.values for code in self._load(dim)]
        rank = len(shape.values)
        info = ShapeStructInfo(ndim=rank)
        return self.emit(
            packed_call("vm.builtin.make_shape", self.heap, rank, *codes, info=info), "s"
        )

    def _load(self, dim: PrimExpr) -> list[int]:
        if isinstance(dim, IntImm):
            return [_IMMEDIATE, int(dim.value)]
        slot = self.slots.find(dim)
        if not slot.is_known:
            raise TVMError(f"{self.name}: {dim} has no value where it is used")
        return [_LOAD, slot.index]


def vm_shape_lower(mod: IRModule, emit_err_ctx: bool = True) -> IRModule:
    """The module with heaps of integers for its symbolic variables."""
    names = UniqueNames(dict.fromkeys([gvar.name_hint for gvar in mod.functions], 1))
    prefix = mod.get_attr("system_lib_prefix") or ""
    functions: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            lowering = _ShapeLowering(mod, gvar.name_hint, names, prefix, emit_err_ctx)
            functions[gvar] = lowering.function(func)
            functions.update(lowering.added)
        else:
            functions[gvar] = func
    return mod.with_functions(functions)


def VMShapeLower(*, emit_err_ctx: bool = True) -> Pass:
    """Keep symbolic variables in a heap, and check arguments at run time.

    Parameters
    ----------
    emit_err_ctx : bool
        Whether errors tell the function and the parameter.
    """

    def run(mod: IRModule, context: object) -> IRModule:
        return vm_shape_lower(mod, emit_err_ctx)

    return ModulePass(run, PassInfo(0, "VMShapeLower", ()))
