"""Visitors and mutators of relax programs, which programs derive from: a method a kind of expression.

    @relax.expr_functor.mutator
    class AddToMultiply(PyExprMutator):
        def visit_call_(self, call):
            call = self.visit_expr_post_order(call)
            return multiply(*call.args) if call.op.name == "relax.add" else call

What a mutator makes is in normal form: it has a block builder, ``self.builder_``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op

from .base import StructInfo, update_struct_info
from .block_builder import BlockBuilder
from .expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    DataTypeImm,
    Expr,
    ExternFunc,
    Function,
    Id,
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
from .struct_info import (
    TensorStructInfo,
    TupleStructInfo,
)
from .struct_info_mutator import StructInfoMutator

C = TypeVar("C", bound=type)

_EXPRESSIONS: dict[type, str] = {
    Constant: "visit_constant_",
    Tuple: "visit_tuple_",
    DataflowVar: "visit_dataflow_var_",
    Var: "visit_var_",
    ShapeExpr: "visit_shape_expr_",
    ExternFunc: "visit_extern_func_",
    GlobalVar: "visit_global_var_",
    Function: "visit_function_",
    Call: "visit_call_",
    SeqExpr: "visit_seq_expr_",
    If: "visit_if_",
    Op: "visit_op_",
    TupleGetItem: "visit_tuple_getitem_",
    PrimValue: "visit_prim_value_",
    StringImm: "visit_string_imm_",
    DataTypeImm: "visit_data_type_imm_",
}
_OTHERS: dict[type, str] = {
    VarBinding: "visit_var_binding_",
    MatchCast: "visit_match_cast_",
    DataflowBlock: "visit_dataflow_block_",
    BindingBlock: "visit_binding_block_",
}


def _method_name(node: Any, names: dict[type, str], what: str) -> str:
    for kind in type(node).__mro__:
        if (name := names.get(kind)) is not None:
            return name
    raise TypeError(f"a visitor of relax requires {what}, got {type(node).__name__}")


class _Dispatcher:
    """Calls the method for the kind of a node."""

    def dispatch_expr(self, expr: RelayExpr) -> Any:
        return getattr(self, _method_name(expr, _EXPRESSIONS, "an expression"))(expr)

    def visit_expr(self, expr: RelayExpr) -> Any:
        """Visit an expression."""
        return self.dispatch_expr(expr)

    def visit_binding(self, binding: Binding) -> Any:
        """Visit a binding."""
        return getattr(self, _method_name(binding, _OTHERS, "a binding"))(binding)

    def visit_binding_block(self, block: BindingBlock) -> Any:
        """Visit a block."""
        return getattr(self, _method_name(block, _OTHERS, "a block"))(block)

    def visit_var_def(self, var: Var) -> Any:
        """Visit a variable where it is defined."""
        if isinstance(var, DataflowVar):
            return self.visit_dataflow_var_def_(var)
        return self.visit_var_def_(var)

    def visit_var_def_(self, var: Var) -> Any:
        """A variable where it is defined."""
        return var

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        """A variable of a dataflow block where it is defined."""
        return self.visit_var_def_(var)

    def visit_span(self, span: Any) -> Any:
        """A place in a source."""
        return span


class ExprFunctor(_Dispatcher):
    """Calls the method for the kind of an expression; those of blocks are the caller's."""

    def visit_constant_(self, op: Constant) -> Any:
        """A constant."""
        raise NotImplementedError

    def visit_tuple_(self, op: Tuple) -> Any:
        """A tuple."""
        raise NotImplementedError

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        """A variable of a dataflow block."""
        raise NotImplementedError

    def visit_var_(self, op: Var) -> Any:
        """A variable."""
        raise NotImplementedError

    def visit_shape_expr_(self, op: ShapeExpr) -> Any:
        """A shape."""
        raise NotImplementedError

    def visit_extern_func_(self, op: ExternFunc) -> Any:
        """A packed function."""
        raise NotImplementedError

    def visit_global_var_(self, op: GlobalVar) -> Any:
        """A global function."""
        raise NotImplementedError

    def visit_function_(self, op: Function) -> Any:
        """A function."""
        raise NotImplementedError

    def visit_call_(self, op: Call) -> Any:
        """A call."""
        raise NotImplementedError

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        """Blocks and a result."""
        raise NotImplementedError

    def visit_if_(self, op: If) -> Any:
        """A choice."""
        raise NotImplementedError

    def visit_op_(self, op: Op) -> Any:
        """An operator."""
        raise NotImplementedError

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        """A field of a tuple."""
        raise NotImplementedError

    def visit_prim_value_(self, op: PrimValue) -> Any:
        """A number."""
        raise NotImplementedError

    def visit_string_imm_(self, op: StringImm) -> Any:
        """A text."""
        raise NotImplementedError

    def visit_data_type_imm_(self, op: DataTypeImm) -> Any:
        """A data type."""
        raise NotImplementedError

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        """A binding."""
        raise NotImplementedError

    def visit_match_cast_(self, binding: MatchCast) -> Any:
        """A checked binding."""
        raise NotImplementedError

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        """A block."""
        raise NotImplementedError

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        """A dataflow block."""
        raise NotImplementedError


class ExprVisitor(ExprFunctor):
    """Visits all of a program; methods of subclasses go on by ``super().visit_call_(call)``."""

    def visit_expr(self, expr: RelayExpr) -> Any:
        return self.dispatch_expr(expr)

    def _leaf(self, op: Any) -> None:
        self._struct_info(op.struct_info_)

    visit_constant_ = visit_shape_expr_ = visit_prim_value_ = visit_string_imm_ = _leaf
    visit_data_type_imm_ = visit_extern_func_ = _leaf

    def visit_var_(self, op: Var) -> Any:
        """A variable."""

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        """A variable of a dataflow block: by default as other variables."""
        return self.visit_var_(op)

    def visit_global_var_(self, op: GlobalVar) -> Any:
        """A global function."""

    def visit_op_(self, op: Op) -> Any:
        """An operator."""

    def visit_tuple_(self, op: Tuple) -> Any:
        for field in op.fields:
            self.visit_expr(field)

    def visit_call_(self, op: Call) -> Any:
        self.visit_expr(op.op)
        for arg in op.args:
            self.visit_expr(arg)
        for info in op.sinfo_args:
            self._struct_info(info)

    def visit_if_(self, op: If) -> Any:
        self.visit_expr(op.cond)
        self.visit_expr(op.true_branch)
        self.visit_expr(op.false_branch)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        self.visit_expr(op.tuple_value)

    def visit_function_(self, op: Function) -> Any:
        for param in op.params:
            self.visit_var_def(param)
        if op.has_body:
            self.visit_expr(op.body)

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        for block in op.blocks:
            self.visit_binding_block(block)
        self.visit_expr(op.body)

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> Any:
        self.visit_expr(binding.value)
        self._struct_info(binding.struct_info)
        self.visit_var_def(binding.var)

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        for binding in block.bindings:
            self.visit_binding(binding)

    def visit_var_def_(self, var: Var) -> Any:
        self._struct_info(var.struct_info_)

    def _struct_info(self, info: StructInfo | None) -> None:
        """The expressions in struct info: shapes that are variables."""
        if isinstance(info, TensorStructInfo) and isinstance(info.shape, Var):
            self.visit_expr(info.shape)
        elif isinstance(info, TupleStructInfo):
            for field in info.fields:
                self._struct_info(field)


class PyExprVisitor(ExprVisitor):
    """The base of visitors that programs write, decorated with `visitor`."""


def visitor(visitor_cls: C) -> C:
    """Marks a visitor."""
    if not issubclass(visitor_cls, PyExprVisitor):
        raise TypeError(f"visitor requires a class derived from PyExprVisitor, got {visitor_cls}")
    return visitor_cls


class ExprMutatorBase(ExprFunctor):
    """Rebuilds expressions from their parts; what has not changed is returned itself."""

    def visit_expr(self, expr: RelayExpr) -> Any:
        return self.dispatch_expr(expr)

    def _leaf(self, op: Any) -> Any:
        return op

    visit_constant_ = visit_shape_expr_ = visit_prim_value_ = visit_string_imm_ = _leaf
    visit_data_type_imm_ = visit_extern_func_ = visit_global_var_ = visit_op_ = visit_var_ = _leaf

    def visit_dataflow_var_(self, op: DataflowVar) -> Any:
        return self.visit_var_(op)

    def _all(self, exprs: tuple[Any, ...]) -> tuple[Any, ...]:
        new = [self.visit_expr(e) for e in exprs]
        same = all([a is b for a, b in zip(new, exprs, strict=True)])
        return exprs if same else tuple(new)

    def visit_tuple_(self, op: Tuple) -> Any:
        fields = self._all(op.fields)
        return op if fields is op.fields else Tuple(fields, op.span)

    def visit_call_(self, op: Call) -> Any:
        callee, args = self.visit_expr(op.op), self._all(op.args)
        infos = tuple([self.visit_struct_info(s) for s in op.sinfo_args])
        same = all([a is b for a, b in zip(infos, op.sinfo_args, strict=True)])
        if callee is op.op and args is op.args and same:
            return op
        return Call(callee, args, op.attrs, infos, op.span)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> Any:
        value = self.visit_expr(op.tuple_value)
        return op if value is op.tuple_value else TupleGetItem(value, op.index, op.span)

    def visit_if_(self, op: If) -> Any:
        parts = [self.visit_expr(e) for e in (op.cond, op.true_branch, op.false_branch)]
        if parts[0] is op.cond and parts[1] is op.true_branch and parts[2] is op.false_branch:
            return op
        return If(parts[0], parts[1], parts[2], op.span)

    def visit_function_(self, op: Function) -> Any:
        body = self.visit_expr(op.body) if op.has_body else None
        if body is op.body:
            return op
        return Function(op.params, body, op.ret_struct_info, op.is_pure, op.attrs, op.span)

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        blocks = [self.visit_binding_block(b) for b in op.blocks]
        body = self.visit_expr(op.body)
        same = all([a is b for a, b in zip(blocks, op.blocks, strict=True)])
        if same and body is op.body:
            return op
        return SeqExpr([b for b in blocks if b.bindings], body, op.span)

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        return self._bindings(block)

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        return self._bindings(block)

    def _bindings(self, block: BindingBlock) -> BindingBlock:
        bindings = []
        for binding in block.bindings:
            value = self.visit_expr(binding.value)
            bindings.append(binding if value is binding.value else binding.replace(value=value))
        same = all([a is b for a, b in zip(bindings, block.bindings, strict=True)])
        return block if same else type(block)(bindings, block.span)

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        """Struct info over new expressions and numbers."""
        found: StructInfo = StructInfoMutator(self.visit_expr, self.visit_prim_expr).visit(info)
        return found

    def visit_prim_expr(self, value: Any) -> Any:
        """A number in struct info or a shape."""
        return value


class ExprMutator(ExprMutatorBase):
    """Rebuilds expressions in normal form, by a block builder."""

    def __init__(self, mod: IRModule | None = None) -> None:
        self.builder_ = BlockBuilder(mod)
        self._remap: dict[Id, Var] = {}
        # numbers in shapes are read where a subclass rewrites them
        self._reads_numbers = type(self).visit_prim_expr is not ExprMutatorBase.visit_prim_expr

    def visit_expr(self, expr: RelayExpr) -> Any:
        """The new expression, in normal form."""
        return self.builder_.normalize(self.dispatch_expr(expr))

    def visit_expr_post_order(self, expr: RelayExpr) -> Any:
        """The expression over its rewritten parts, in normal form."""
        name = _method_name(expr, _EXPRESSIONS, "an expression")
        return self.builder_.normalize(getattr(ExprMutator, name)(self, expr))

    def visit_var_(self, op: Var) -> Any:
        return self._remap.get(op.vid, op)

    def visit_shape_expr_(self, op: ShapeExpr) -> Any:
        if not self._reads_numbers:
            return op
        values = StructInfoMutator(self.visit_expr, self.visit_prim_expr).numbers(op.values)
        return op if values is op.values else ShapeExpr(values, op.span)

    def visit_prim_value_(self, op: PrimValue) -> Any:
        if not self._reads_numbers:
            return op
        value = self.visit_prim_expr(op.value)
        return op if value is op.value else PrimValue(value, op.span)

    def visit_function_(self, op: Function) -> Any:
        params = []
        for param in op.params:
            new = self.visit_var_def(param)
            if new is not param:
                self._remap[param.vid] = new
            params.append(new)
        if not op.has_body:
            return op
        body = self.visit_with_new_scope(op.body, params)
        same = all([a is b for a, b in zip(params, op.params, strict=True)])
        ret = op.ret_struct_info
        if self._reads_numbers:
            ret = self.visit_struct_info(ret)
        if same and body is op.body and ret is op.ret_struct_info:
            return op
        return Function(params, body, ret, op.is_pure, op.attrs, op.span)

    def visit_if_(self, op: If) -> Any:
        cond = self.visit_expr(op.cond)
        first, second = [self.visit_with_new_scope(b) for b in (op.true_branch, op.false_branch)]
        if cond is op.cond and first is op.true_branch and second is op.false_branch:
            return op
        return If(cond, first, second, op.span)

    def visit_with_new_scope(self, expr: RelayExpr, params: Sequence[Var] | None = None) -> Any:
        """A body, whose definitions are not visible outside."""
        self.builder_.begin_scope(params)
        result = self.visit_expr(expr)
        self.builder_.end_scope()
        return result

    def visit_seq_expr_(self, op: SeqExpr) -> Any:
        blocks = []
        same = True
        for block in op.blocks:
            new = self.visit_binding_block(block)
            same = same and new is block
            if new.bindings:
                blocks.append(new)
        self.builder_.begin_block(is_dataflow=False)
        body = self.visit_expr(op.body)
        rest = self.builder_.end_block()
        if rest.bindings:
            blocks.append(rest)
            same = False
        if same and body is op.body and len(blocks) == len(op.blocks):
            return op
        return SeqExpr(blocks, body, op.span)

    def visit_binding_block_(self, block: BindingBlock) -> Any:
        return self._block(block, is_dataflow=False)

    def visit_dataflow_block_(self, block: DataflowBlock) -> Any:
        return self._block(block, is_dataflow=True)

    def _block(self, block: BindingBlock, is_dataflow: bool) -> BindingBlock:
        self.builder_.begin_block(is_dataflow)
        for binding in block.bindings:
            self.visit_binding(binding)
        new = self.builder_.end_block()
        same = len(new.bindings) == len(block.bindings) and all(
            [a is b for a, b in zip(new.bindings, block.bindings, strict=True)]
        )
        return block if same else new

    def visit_var_binding_(self, binding: VarBinding) -> Any:
        self.reemit_binding(binding, self.visit_expr(binding.value))

    def reemit_binding(self, binding: VarBinding, value: RelayExpr) -> None:
        """Bind a variable to a new value; it becomes another variable if its struct info changes."""
        var = self.visit_var_def(binding.var)
        if var is binding.var and value is binding.value:
            self.builder_.emit_normalized(binding)
            return
        var = self.with_struct_info(var, value.struct_info)
        self._remap[binding.var.vid] = var
        self.builder_.emit_normalized(VarBinding(var, value, binding.span))

    def visit_match_cast_(self, binding: MatchCast) -> Any:
        value = self.visit_expr(binding.value)
        info = self.visit_struct_info(binding.struct_info)
        var = self.visit_var_def(binding.var)
        if var is binding.var and value is binding.value and info is binding.struct_info:
            self.builder_.emit_normalized(binding)
            return
        var = self.with_struct_info(var, info)
        self._remap[binding.var.vid] = var
        self.builder_.emit_normalized(MatchCast(var, value, info, binding.span))

    def visit_var_def_(self, var: Var) -> Any:
        if var.struct_info_ is None:
            return var
        info = self.visit_struct_info(var.struct_info_)
        if info is var.struct_info_:
            return var
        new = type(var)(var.vid, info, var.span)
        self._remap[var.vid] = new
        return new

    def visit_dataflow_var_def_(self, var: DataflowVar) -> Any:
        return ExprMutator.visit_var_def_(self, var)

    def set_var_remap(self, vid: Id, var: Var) -> None:
        """Let a variable stand for the one of an identity."""
        self._remap[vid] = var

    def get_var_remap(self, vid: Id) -> Var | None:
        """The variable that stands for the one of an identity."""
        return self._remap.get(vid)

    def lookup_binding(self, var: Var) -> RelayExpr | None:
        """The new value of a variable."""
        return self.builder_.lookup_binding(var)

    def with_struct_info(self, var: Var, struct_info: StructInfo) -> Var:
        """The variable with other struct info; itself if that is the same."""
        if var.struct_info_ is None:
            update_struct_info(var, struct_info)
            return var
        if var.struct_info_ is struct_info or var.struct_info_ == struct_info:
            return var
        return type(var)(var.vid, struct_info, var.span)


class PyExprMutator(ExprMutator):
    """The base of mutators that programs write, decorated with `mutator`.

    Parameters
    ----------
    mod : IRModule, optional
        What the block builder adds functions to.
    """


def mutator(mutator_cls: C) -> C:
    """Marks a mutator."""
    if not issubclass(mutator_cls, PyExprMutator):
        raise TypeError(f"mutator requires a class derived from PyExprMutator, got {mutator_cls}")
    return mutator_cls


__all__ = [
    "Expr", "ExprFunctor", "ExprMutator", "ExprMutatorBase", "ExprVisitor", "PyExprMutator",
    "PyExprVisitor", "mutator", "visitor",
]  # fmt: skip
