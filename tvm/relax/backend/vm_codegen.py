"""Functions of relax become instructions of the virtual machine.

y = "vm.builtin.reshape"(x, shape)    ->    call vm.builtin.reshape in: %0, c[0] dst: %1
return y                                    ret  %1
"""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relax.exec_builder import ExecBuilder, VMFuncKind
from tvm.relax.expr import (
    Call,
    Constant,
    DataTypeImm,
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
from tvm.relax.struct_info import ShapeExpr, TupleStructInfo
from tvm.runtime.container import ShapeTuple
from tvm.tir.expr import FloatImm, IntImm

# operators that are calls of functions; the machine itself is the first argument of some
MACHINE_OPS = {
    "relax.vm.alloc_storage": ("vm.builtin.alloc_storage", True),
    "relax.vm.alloc_tensor": ("vm.builtin.alloc_tensor", False),
    "relax.null_value": ("vm.builtin.null_value", False),
}


def is_void(expr: RelayExpr) -> bool:
    """Whether an expression has no value."""
    info = expr.struct_info_
    return isinstance(info, TupleStructInfo) and not info.fields


def symbol_of(gvar: GlobalVar, mod: IRModule) -> str:
    """The name that a function is called by."""
    func = mod.functions.get(gvar)
    if isinstance(func, ExternFunc):
        return func.global_symbol
    named = None if func is None else func.attrs.get("global_symbol")
    return str(named or gvar.name_hint)


def require_symbol(gvar: GlobalVar, func: Function) -> str:
    """The name of a function that has one."""
    name = func.attrs.get("global_symbol")
    if not name:
        raise TVMError(
            f"the virtual machine requires names of functions, {gvar.name_hint} has none",
            hint="run relax.transform.AttachGlobalSymbol first",
        )
    return str(name)


def constant_of(expr: RelayExpr) -> Any:
    """The value of an expression that is one at compile time; raises for others."""
    if isinstance(expr, Constant):
        return expr.data
    if isinstance(expr, (StringImm, DataTypeImm)):
        return expr.value
    if isinstance(expr, PrimValue) and isinstance(expr.value, (IntImm, FloatImm)):
        return expr.value.value
    if isinstance(expr, ShapeExpr):
        extents = [dim.value for dim in expr.values if isinstance(dim, IntImm)]
        if len(extents) == len(expr.values):
            return ShapeTuple(extents)
    raise TVMError(
        f"the virtual machine's code requires values that are known or bound, got {expr}",
        hint="run relax.transform.VMShapeLower first",
    )


class FunctionCompiler:
    """Emits the instructions of one function."""

    def __init__(self, builder: ExecBuilder, mod: IRModule) -> None:
        self.builder = builder
        self.mod = mod
        self.registers: dict[Var, int] = {}
        self._next = 0

    def run(self, gvar: GlobalVar, func: Function) -> None:
        params = [param.name_hint for param in func.params]
        with self.builder.function(require_symbol(gvar, func), len(params), params):
            for param in func.params:
                self.registers[param] = self._new()
            result = self.register(self.value(func.body))
            self.builder.emit_ret(self.builder.r(result))

    def _new(self) -> int:
        self._next += 1
        return self._next - 1

    def register(self, arg: int) -> int:
        """The register of an argument; what is elsewhere is copied into a new one."""
        if 0 <= arg < 1 << 54:
            return arg
        to = self._new()
        self.builder.emit_call("vm.builtin.copy", [arg], dst=to)
        return to

    def sequence(self, seq: SeqExpr) -> int:
        for block in seq.blocks:
            for binding in block.bindings:
                self.registers[binding.var] = self.value(binding.value)
        return self.value(seq.body)

    def value(self, expr: RelayExpr) -> int:
        """The argument that holds the value of an expression, computed here unless it is there."""
        match expr:
            case Var():
                return self.registers[expr]
            case SeqExpr():
                return self.sequence(expr)
            case Call():
                return self._call(expr)
            case Tuple():
                return self._emit("vm.builtin.make_tuple", [self.value(f) for f in expr.fields])
            case TupleGetItem():
                args = [self.value(expr.tuple_value), self.builder.imm(expr.index)]
                return self._emit("vm.builtin.tuple_getitem", args)
            case If():
                return self._if(expr)
            case GlobalVar():
                symbol, is_own = symbol_of(expr, self.mod), self._is_own(expr)
                kind = VMFuncKind.VM_FUNC if is_own else VMFuncKind.PACKED_FUNC
                self.builder.declare_function(symbol, kind)
                return self.builder.f(symbol)
            case ExternFunc():
                return self.builder.f(expr.global_symbol)
        return self.builder.convert_constant(constant_of(expr))

    def _is_own(self, gvar: GlobalVar) -> bool:
        return isinstance(self.mod.functions.get(gvar), Function)

    def _emit(self, name: str, args: list[int], void: bool = False) -> int:
        if void:
            self.builder.emit_call(name, args)
            return self.builder.void_arg()
        to = self._new()
        self.builder.emit_call(name, args, dst=to)
        return to

    def _if(self, expr: If) -> int:
        merged = self._new()
        cond = self._emit("vm.builtin.read_if_cond", [self.value(expr.cond)])
        branch = self.builder.here()
        self.builder.emit_if(cond, 1)
        self._copy(self.sequence(expr.true_branch), merged)
        jump = self.builder.here()
        self.builder.emit_goto(1)
        self.builder.set_offset(branch, self.builder.here() - branch)
        self._copy(self.sequence(expr.false_branch), merged)
        self.builder.set_offset(jump, self.builder.here() - jump)
        return merged

    def _copy(self, arg: int, to: int) -> None:
        self.builder.emit_call("vm.builtin.copy", [arg], dst=to)

    def _call(self, call: Call) -> int:
        if isinstance(call.op, Op):
            return self._operator(call, call.op.name)
        args = [self.value(arg) for arg in call.args]
        if isinstance(call.op, GlobalVar):
            symbol = symbol_of(call.op, self.mod)
            if self._is_own(call.op):
                self.builder.declare_function(symbol, VMFuncKind.VM_FUNC)
            return self._emit(symbol, args, is_void(call))
        if isinstance(call.op, ExternFunc):
            return self._emit(call.op.global_symbol, args, is_void(call))
        if isinstance(call.op, Var):
            args = [self.builder.vm_state(), self.registers[call.op], *args]
            return self._emit("vm.builtin.invoke_closure", args, is_void(call))
        raise TVMError(f"the virtual machine cannot call {call.op}")

    def _operator(self, call: Call, name: str) -> int:
        if name == "relax.call_builtin_with_ctx":
            callee, given = call.args
            assert isinstance(callee, ExternFunc)
            fields = given.fields if isinstance(given, Tuple) else [given]
            args = [self.builder.vm_state(), *[self.value(field) for field in fields]]
            return self._emit(callee.global_symbol, args, is_void(call))
        if name == "relax.vm.kill_object":
            register = self.value(call.args[0])
            if 0 <= register < 1 << 54:  # constants stay
                self.builder.emit_call("vm.builtin.null_value", [], dst=register)
            return self.builder.void_arg()
        if name not in MACHINE_OPS:
            raise TVMError(
                f"the virtual machine has no instruction for {name}",
                hint="relax.transform.LegalizeOps lowers operators to loop programs",
            )
        symbol, has_machine = MACHINE_OPS[name]
        args = [self.value(arg) for arg in call.args]
        return self._emit(symbol, [self.builder.vm_state(), *args] if has_machine else args)


def compile_functions(builder: ExecBuilder, mod: IRModule) -> IRModule:
    """Emit the functions of relax; the module with the other ones.

    Parameters
    ----------
    builder : ExecBuilder
        What they are emitted into.
    mod : IRModule
        The module, lowered for the virtual machine.
    """
    rest = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            FunctionCompiler(builder, mod).run(gvar, func)
        else:
            rest[gvar] = func
    return mod.with_functions(rest)
