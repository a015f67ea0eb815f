"""Functions in normal form are rewritten binding by binding.

A rewriter says what becomes of the value of a binding, and may put other bindings before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import ModulePass, PassInfo
from tvm.relax.base import StructInfo, update_struct_info
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    Call,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    StringImm,
    TupleGetItem,
    Var,
    VarBinding,
    as_expr,
)
from tvm.relax.struct_info import ObjectStructInfo, TupleStructInfo

VOID = TupleStructInfo([])


class BindingRewriter:
    """Rewrites what is bound; subclasses override :meth:`value`, and others where they need to."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self._bindings: list[Binding] = []

    def function(self, func: Function) -> Function:
        """The function rewritten; itself if nothing changes."""
        body = self.sequence(func.body)
        return func if body is func.body else func.replace(body=body)

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A sequence of blocks rewritten."""
        blocks = [self.block(block) for block in seq.blocks]
        outer, self._bindings = self._bindings, []
        body = self.result(seq.body)
        if self._bindings:
            blocks.append(BindingBlock(self._bindings))
        self._bindings = outer
        is_same = all([a is b for a, b in zip(blocks, seq.blocks, strict=False)])
        if body is seq.body and is_same and len(blocks) == len(seq.blocks):
            return seq
        made = SeqExpr([block for block in blocks if block.bindings], body)
        update_struct_info(made, body.struct_info_ or seq.struct_info_)
        return made

    def block(self, block: BindingBlock) -> BindingBlock:
        """A block rewritten."""
        outer, self._bindings = self._bindings, []
        for binding in block.bindings:
            self.binding(binding)
        bindings, self._bindings = self._bindings, outer
        is_same = len(bindings) == len(block.bindings) and all(
            [a is b for a, b in zip(bindings, block.bindings, strict=True)]
        )
        return block if is_same else block.replace(bindings=tuple(bindings))

    def binding(self, binding: Binding) -> None:
        """Put what a binding becomes."""
        if isinstance(binding, MatchCast):
            self.match_cast(binding)
            return
        value = binding.value
        if isinstance(value, If):
            branches = [self.sequence(value.true_branch), self.sequence(value.false_branch)]
            cond = self.argument(value.cond)
            is_same = cond is value.cond and branches[0] is value.true_branch
            new: Any = value
            if not (is_same and branches[1] is value.false_branch):
                new = If(cond, branches[0], branches[1])
                update_struct_info(new, value.struct_info_)
        elif isinstance(value, Function):
            new = self.function(value)
        else:
            new = self.value(value, binding.var)
        if new is not None:
            self.put(binding if new is value else VarBinding(binding.var, new))

    def match_cast(self, binding: MatchCast) -> None:
        """Put what a check becomes."""
        value = self.argument(binding.value)
        same = value is binding.value
        self.put(binding if same else MatchCast(binding.var, value, binding.struct_info))

    def value(self, value: RelayExpr, var: Var) -> RelayExpr | None:
        """What is bound instead of a value; None for no binding. By default arguments are rewritten."""
        return self.with_arguments(value)

    def with_arguments(self, value: RelayExpr) -> RelayExpr:
        """The value, its arguments rewritten."""
        if isinstance(value, Call):
            args = [self.argument(arg) for arg in value.args]
            if all([a is b for a, b in zip(args, value.args, strict=True)]):
                return value
            return value.replace(args=tuple(args))
        if isinstance(value, TupleGetItem):
            whole = self.argument(value.tuple_value)
            return value if whole is value.tuple_value else TupleGetItem(whole, value.index)
        return self.argument(value)

    def argument(self, arg: RelayExpr) -> RelayExpr:
        """What an argument becomes."""
        return arg

    def result(self, body: RelayExpr) -> RelayExpr:
        """What the result of a sequence becomes."""
        return self.argument(body)

    def put(self, binding: Binding) -> None:
        """Put a binding."""
        self._bindings.append(binding)

    def emit(self, value: RelayExpr, name: str = "_") -> Var:
        """Bind a value to a new variable."""
        var = Var(name, value.struct_info_)
        self.put(VarBinding(var, value))
        return var


def op_call(name: str, *args: Any, info: StructInfo | None = None, attrs: Any = None) -> Call:
    """A call of an operator of known struct info."""
    call = Call(Op.get(name), [as_expr(arg) for arg in args], attrs)
    update_struct_info(call, info if info is not None else ObjectStructInfo())
    return call


def packed_call(name: str, *args: Any, info: StructInfo = VOID) -> Call:
    """A call of a packed function that returns what ``info`` says."""
    call = Call(ExternFunc(name), [_operand(arg) for arg in args], None, [info])
    update_struct_info(call, info)
    return call


def _operand(value: Any) -> RelayExpr:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        found: RelayExpr = as_expr(value)
        return found
    return PrimValue(value) if isinstance(value, int) else StringImm(value)


def function_pass(
    name: str, rewrite: Callable[[Function, IRModule], Function], opt_level: int = 0
) -> ModulePass:
    """A pass that rewrites each function of relax on its own."""

    def run(mod: IRModule, context: Any) -> IRModule:
        return mod.map_functions(
            lambda _, func: rewrite(func, mod) if isinstance(func, Function) else func
        )

    return ModulePass(run, PassInfo(opt_level, name, ()))
