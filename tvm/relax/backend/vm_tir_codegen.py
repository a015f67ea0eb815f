"""Functions of relax become loop programs that work on the machine's registers.

y = "vm.builtin.reshape"(x, shape)    ->    anylist_setitem_call_packed(r, 2, "vm.builtin.reshape", anylist_getitem(r, 0), ...)
return y                                    anylist_setitem_call_packed(r, 1, "vm.builtin.copy", anylist_getitem(r, 2))

Registers ``r``, constants ``c`` and functions ``f`` are lists of any values; the register behind the
parameters is the result's.
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, PrimExpr, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relax.exec_builder import ExecBuilder, VMFuncKind
from tvm.relax.expr import (
    Call,
    ExternFunc,
    Function,
    If,
    PrimValue,
    SeqExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from tvm.tir import PrimFunc
from tvm.tir import Var as TirVar
from tvm.tir.builtin import (
    anylist_getitem,
    anylist_resetitem,
    anylist_setitem_call_cpacked,
    anylist_setitem_call_packed,
    call_cpacked,
    call_packed,
)
from tvm.tir.expr import Call as TirCall
from tvm.tir.expr import IntImm
from tvm.tir.expr import StringImm as TirStringImm
from tvm.tir.op import reinterpret
from tvm.tir.stmt import Evaluate, IfThenElse, SeqStmt, Stmt

from .vm_codegen import MACHINE_OPS, constant_of, is_void, require_symbol, symbol_of

COMPILED_PREFIX = "__vmtir__"


class _Registers:
    """The lists that a compiled function is given."""

    def __init__(self) -> None:
        names = ("ctx_ptr", "r", "c", "f")
        self.machine, self.values, self.constants, self.functions = [
            TirVar(name, "handle") for name in names
        ]

    @property
    def params(self) -> list[TirVar]:
        return [self.machine, self.values, self.constants, self.functions]

    def value(self, index: int) -> PrimExpr:
        return anylist_getitem(self.values, IntImm("int32", index))


class _FunctionLowering:
    def __init__(self, builder: ExecBuilder, mod: IRModule) -> None:
        self.builder = builder
        self.mod = mod
        self.lists = _Registers()
        self.registers: dict[Var, PrimExpr] = {}
        self.stmts: list[Stmt] = []
        self._next = 0

    def run(self, gvar: GlobalVar, func: Function) -> PrimFunc:
        for i, param in enumerate(func.params):
            self.registers[param] = self.lists.value(i)
        result = len(func.params)
        self._next = result + 1
        self._copy(self.value(func.body), result)
        symbol = require_symbol(gvar, func)
        names = [param.name_hint for param in func.params]
        self.builder.compiled_function(symbol, len(names), names, self._next)
        body = _sequence(self.stmts)
        return PrimFunc(self.lists.params, body).with_attr(
            "global_symbol", f"{COMPILED_PREFIX}{symbol}"
        )

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def _copy(self, value: PrimExpr, to: int) -> None:
        self._packed("vm.builtin.copy", [value], to)

    def _packed(self, name: str, args: list[PrimExpr], to: int | None) -> None:
        call = (
            call_packed(name, *args)
            if to is None
            else anylist_setitem_call_packed(self.lists.values, IntImm("int32", to), name, *args)
        )
        self.stmts.append(Evaluate(call))

    def _cpacked(self, name: str, args: list[PrimExpr], to: int | None) -> None:
        # loop programs of the same library, called directly; the last argument is their resource handle
        args = [*args, reinterpret("handle", IntImm("uint64", 0))]
        call = (
            call_cpacked(name, *args)
            if to is None
            else anylist_setitem_call_cpacked(self.lists.values, IntImm("int32", to), name, *args)
        )
        self.stmts.append(Evaluate(call))

    def _emit(self, name: str, args: list[PrimExpr], void: bool = False) -> PrimExpr:
        to = None if void else self._new()
        self._packed(name, args, to)
        return self._result(to)

    def _result(self, to: int | None) -> PrimExpr:
        return reinterpret("handle", IntImm("uint64", 0)) if to is None else self.lists.value(to)

    def _function(self, symbol: str, kind: VMFuncKind) -> PrimExpr:
        self.builder.declare_function(symbol, kind)
        index = self.builder.function_index(symbol)
        return anylist_getitem(self.lists.functions, IntImm("int32", index))

    def value(self, expr: RelayExpr) -> PrimExpr:
        """The value of an expression, computed by statements unless it is there."""
        match expr:
            case Var():
                return self.registers[expr]
            case SeqExpr():
                for block in expr.blocks:
                    for binding in block.bindings:
                        self.registers[binding.var] = self.value(binding.value)
                return self.value(expr.body)
            case Call():
                return self._call(expr)
            case Tuple():
                return self._emit("vm.builtin.make_tuple", [self.value(f) for f in expr.fields])
            case TupleGetItem():
                args = [self.value(expr.tuple_value), IntImm("int32", expr.index)]
                return self._emit("vm.builtin.tuple_getitem", args)
            case If():
                return self._if(expr)
            case GlobalVar():
                is_own = isinstance(self.mod.functions.get(expr), Function)
                kind = VMFuncKind.VM_TIR_FUNC if is_own else VMFuncKind.PACKED_FUNC
                return self._function(symbol_of(expr, self.mod), kind)
            case ExternFunc():
                return self._function(expr.global_symbol, VMFuncKind.PACKED_FUNC)
            case PrimValue():
                return expr.value
            case StringImm():
                return TirStringImm(expr.value)
        place = self.builder.constant_index(constant_of(expr))
        return anylist_getitem(self.lists.constants, IntImm("int32", place))

    def _if(self, expr: If) -> PrimExpr:
        cond = self.value(expr.cond)
        merged = self._new()
        branches = []
        for branch in (expr.true_branch, expr.false_branch):
            outer, self.stmts = self.stmts, []
            self._copy(self.value(branch), merged)
            branches.append(_sequence(self.stmts))
            self.stmts = outer
        read = [TirStringImm("vm.builtin.read_if_cond"), cond]
        test = TirCall("bool", Op.get("tir.tvm_call_packed"), read)
        self.stmts.append(IfThenElse(test, *branches))
        return self.lists.value(merged)

    def _call(self, call: Call) -> PrimExpr:
        if isinstance(call.op, Op):
            return self._operator(call, call.op.name)
        args = [self.value(arg) for arg in call.args]
        void = is_void(call)
        if isinstance(call.op, ExternFunc):
            return self._emit(call.op.global_symbol, args, void)
        if isinstance(call.op, GlobalVar):
            func = self.mod.functions.get(call.op)
            if isinstance(func, PrimFunc):
                to = None if void else self._new()
                self._cpacked(symbol_of(call.op, self.mod), args, to)
                return self._result(to)
            if not isinstance(func, Function):
                return self._emit(symbol_of(call.op, self.mod), args, void)
        callee = self.value(call.op)
        return self._emit("vm.builtin.invoke_closure", [self.lists.machine, callee, *args], void)

    def _operator(self, call: Call, name: str) -> PrimExpr:
        if name == "relax.call_builtin_with_ctx":
            callee, given = call.args
            assert isinstance(callee, ExternFunc)
            fields = given.fields if isinstance(given, Tuple) else [given]
            args = [self.lists.machine, *[self.value(field) for field in fields]]
            return self._emit(callee.global_symbol, args, is_void(call))
        if name == "relax.null_value":
            return reinterpret("handle", IntImm("uint64", 0))
        if name == "relax.vm.kill_object":
            item = self.value(call.args[0])
            if isinstance(item, TirCall) and item.args[0] is self.lists.values:  # constants stay
                self.stmts.append(Evaluate(anylist_resetitem(*item.args)))
            return self._result(None)
        if name not in MACHINE_OPS:
            raise TVMError(
                f"the virtual machine has no function for {name}",
                hint="relax.transform.LegalizeOps lowers operators to loop programs",
            )
        symbol, has_machine = MACHINE_OPS[name]
        args = [self.value(arg) for arg in call.args]
        return self._emit(symbol, [self.lists.machine, *args] if has_machine else args)


def _sequence(stmts: list[Stmt]) -> Stmt:
    return stmts[0] if len(stmts) == 1 else SeqStmt(tuple(stmts))


def lower_functions(builder: ExecBuilder, mod: IRModule) -> IRModule:
    """Declare the functions of relax; the module with loop programs in their place.

    Parameters
    ----------
    builder : ExecBuilder
        Where they are declared.
    mod : IRModule
        The module, lowered for the virtual machine.
    """
    functions: dict[GlobalVar, Any] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            lowered = _FunctionLowering(builder, mod).run(gvar, func)
            functions[GlobalVar(lowered.attrs["global_symbol"])] = lowered
        else:
            functions[gvar] = func
    return mod.with_functions(functions)
