"""Normal form: arguments are variables, constants or tuples of such; struct info is known everywhere.

add(multiply(x, x), y)    ->    lv = multiply(x, x); add(lv, y)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm.error import TVMError, TypeCheckError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.op import Op

from .base import update_struct_info
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .struct_info import FuncStructInfo, StructInfo, TupleStructInfo
from .struct_info_relations import derive_call_ret_struct_info, erase, struct_info_lca

if TYPE_CHECKING:
    from .block_builder import BlockBuilder

_LEAVES = (
    Constant, Var, DataflowVar, GlobalVar, ExternFunc, ShapeExpr, Op, Tuple, PrimValue, StringImm,
    DataTypeImm,
)  # fmt: skip


def is_leaf_or_tuple(expr: RelayExpr) -> bool:
    """Whether an expression may be an argument in normal form."""
    return isinstance(expr, _LEAVES)


class Normalizer:
    """Brings expressions into normal form; what must be bound goes to the builder's current block."""

    def __init__(self, builder: BlockBuilder) -> None:
        self.builder = builder
        # every operator's own rewriting, such as that of the arguments of call_tir
        self.apply_operator_rules = True

    def visit(self, expr: RelayExpr) -> RelayExpr:
        """The expression in normal form; itself if it is."""
        method = _METHODS.get(type(expr))
        return expr if method is None else method(self, expr)

    def argument(self, expr: RelayExpr) -> RelayExpr:
        """An expression as an argument: bound to a variable unless it is a leaf."""
        if type(expr) in _KEPT:
            return expr
        frame = self.builder.frame
        if frame is not None and (known := frame.normalized.get(id(expr))) is not None:
            return known[1]
        new = self.visit(expr)
        if is_leaf_or_tuple(expr):
            return new
        if frame is None:
            raise TVMError(f"Cannot normalize non-leaf without a scope: {type(expr).__name__}")
        var = self.builder.emit_normal(new)
        frame.normalized[id(expr)] = (expr, var)
        return var

    def arguments(self, exprs: tuple[RelayExpr, ...]) -> tuple[RelayExpr, ...]:
        new = [self.argument(e) for e in exprs]
        return exprs if all([a is b for a, b in zip(new, exprs, strict=True)]) else tuple(new)

    def variable(self, var: Var) -> RelayExpr:
        info = var.struct_info_
        if info is None:
            raise TVMError(f"Var {var.name_hint} does not have struct info.")
        # text does not show variables of no value, so nothing may name them
        return Tuple(()) if isinstance(info, TupleStructInfo) and not info.fields else var

    def tuple(self, expr: Tuple) -> RelayExpr:
        fields = self.arguments(expr.fields)
        if fields is not expr.fields:
            return Tuple(fields, expr.span)
        if expr.struct_info_ is None:
            update_struct_info(expr, TupleStructInfo([f.struct_info for f in fields]))
        return expr

    def item(self, expr: TupleGetItem) -> RelayExpr:
        value = self.argument(expr.tuple_value)
        if value is not expr.tuple_value or expr.struct_info_ is None:
            made = TupleGetItem(value, expr.index, expr.span)
            if value is not expr.tuple_value:
                expr = made
            else:
                update_struct_info(expr, made.struct_info_)
        return expr

    def call(self, expr: Call) -> RelayExpr:
        op, args = self.argument(expr.op), self.arguments(expr.args)
        if op is not expr.op or args is not expr.args:
            expr = Call(op, args, expr.attrs, expr.sinfo_args, expr.span)
        if expr.struct_info_ is None:
            update_struct_info(expr, self.builder.infer(expr))
        rule = op.extra.get("FNormalize") if isinstance(op, Op) else None
        if rule is not None and self.apply_operator_rules:
            new: RelayExpr = rule(self.builder, expr)
            return new if new is expr else self.visit(new)
        return expr

    def choice(self, expr: If) -> RelayExpr:
        cond = self.argument(expr.cond)
        branches = [self.scoped(b, None) for b in (expr.true_branch, expr.false_branch)]
        same = branches[0] is expr.true_branch and branches[1] is expr.false_branch
        if cond is not expr.cond or not same:
            expr = If(cond, branches[0], branches[1], expr.span)
        if expr.struct_info_ is None:
            common = struct_info_lca(branches[0].struct_info, branches[1].struct_info)
            update_struct_info(expr, self.builder.erased(common))
        return expr

    def function(self, func: Function) -> RelayExpr:
        if not func.has_body:
            return func
        body = self.scoped(func.body, func.params)
        if body is func.body:
            return func
        return Function(
            func.params, body, func.ret_struct_info, func.is_pure, func.attrs, func.span
        )

    def scoped(self, seq: SeqExpr, params: Sequence[Var] | None) -> RelayExpr:
        """A body whose definitions are not visible outside."""
        self.builder.begin_scope(params)
        result = self.visit(seq)
        self.builder.end_scope()
        return result

    def sequence(self, seq: SeqExpr) -> RelayExpr:
        blocks = [new for block in seq.blocks for new in self.block(block)]
        self.builder.begin_block(is_dataflow=False)
        body = self.argument(seq.body)
        if (last := self.builder.end_block()).bindings:
            blocks.append(last)
        merged = _merge(blocks)
        same = len(merged) == len(seq.blocks) and all(
            [a is b for a, b in zip(merged, seq.blocks, strict=True)]
        )
        if not same or body is not seq.body:
            seq = SeqExpr(merged, body, seq.span)
        if seq.struct_info_ is None:
            update_struct_info(seq, self.builder.erased(body.struct_info))
        return seq

    def block(self, block: BindingBlock) -> list[BindingBlock]:
        """A block in normal form; those that a binding's value has come before its own."""
        is_dataflow = isinstance(block, DataflowBlock)
        done: list[BindingBlock] = []
        self.builder.begin_block(is_dataflow)
        for binding in block.bindings:
            self.binding(binding, done, is_dataflow)
        last = self.builder.end_block()
        if not done and _same_bindings(last, block):
            return [block] if block.bindings else []
        return [b for b in (*done, last) if b.bindings]

    def binding(self, binding: Binding, done: list[BindingBlock], is_dataflow: bool) -> None:
        value = binding.value
        new = self.visit(value)
        if isinstance(new, SeqExpr):
            new = self._inline(new, done, is_dataflow)
        var = binding.var
        if var.struct_info_ is None:
            info = binding.struct_info if isinstance(binding, MatchCast) else new.struct_info
            update_struct_info(var, info)
        if new is not value:
            if isinstance(binding, MatchCast):
                binding = MatchCast(var, new, binding.struct_info, binding.span)
            else:
                binding = VarBinding(var, new, binding.span)
        self.builder.emit_normalized(binding)

    def _inline(self, seq: SeqExpr, done: list[BindingBlock], is_dataflow: bool) -> RelayExpr:
        """Put the blocks of a binding's value before it."""
        done.append(self.builder.end_block())
        for block in seq.blocks:
            if is_dataflow and not isinstance(block, DataflowBlock):
                block = DataflowBlock(block.bindings)
            done.append(block)
        self.builder.begin_block(is_dataflow)
        return seq.body


def _same_bindings(a: BindingBlock, b: BindingBlock) -> bool:
    return len(a.bindings) == len(b.bindings) and all(
        [x is y for x, y in zip(a.bindings, b.bindings, strict=True)]
    )


def _merge(blocks: list[BindingBlock]) -> list[BindingBlock]:
    """Adjacent blocks of one kind as one."""
    merged: list[BindingBlock] = []
    for block in blocks:
        if merged and type(merged[-1]) is type(block):
            merged[-1] = type(block)((*merged[-1].bindings, *block.bindings))
        else:
            merged.append(block)
    return merged


_METHODS: dict[type, Callable[[Any, Any], Any]] = {
    Var: Normalizer.variable,
    DataflowVar: Normalizer.variable,
    Tuple: Normalizer.tuple,
    TupleGetItem: Normalizer.item,
    Call: Normalizer.call,
    If: Normalizer.choice,
    Function: Normalizer.function,
    SeqExpr: Normalizer.sequence,
}
# they have struct info and no parts
_KEPT = {Constant, GlobalVar, ExternFunc, ShapeExpr, Op, PrimValue, StringImm, DataTypeImm}


def infer_call(call: Call, builder: BlockBuilder) -> StructInfo:
    """The struct info of a call whose arguments have theirs.

    Raises
    ------
    TVMError
        If the arguments do not fit, or nothing is known of the callee.
    """
    op = call.op
    if isinstance(op, Op):
        rule = op.extra.get("FInferStructInfo")
        if rule is None:
            raise TVMError(f"the operator {op.name} has no FInferStructInfo")
        try:
            found: StructInfo = rule(call, builder)
        except TVMError:
            raise
        except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
            raise TypeCheckError(
                f"{op.name} has no struct info for its arguments: {error}", at=call
            ) from error
        return found
    info = op.struct_info_
    if info is None and isinstance(op, GlobalVar):
        info = builder.struct_info_of_global(op)
    if not isinstance(info, FuncStructInfo):
        raise TVMError(f"a call requires a function, got {op} which is {info}")
    return derive_call_ret_struct_info(info, call, builder)


def erase_in_scope(info: StructInfo, numbers: dict[Any, Any] | None) -> StructInfo:
    """Struct info without variables that the scope does not have."""
    if numbers is None:
        return info
    return erase(info, lambda var: var if var in numbers else None, lambda var: None)
