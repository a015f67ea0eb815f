"""Whether programs are well formed: every pass takes such, and leaves such."""

from __future__ import annotations

import logging
from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from tvm.relax.expr_functor import ExprVisitor
from tvm.relax.normalize import is_leaf_or_tuple
from tvm.relax.purity import FORCE_PURE, find_impure_call, is_impure_call
from tvm.relax.struct_info import FuncStructInfo, TensorStructInfo
from tvm.relax.struct_info_relations import definable_tir_vars_in_struct_info, tir_vars_in
from tvm.support import deep


class _Checker(ExprVisitor):
    """Collects what is wrong."""

    def __init__(self, mod: IRModule | None, checks_struct_info: bool) -> None:
        self.mod = mod
        self.checks_struct_info = checks_struct_info
        self.problems: list[str] = []
        self.visible: dict[Var, None] = {}
        self.symbols: dict[Any, None] = {}
        self.owners: dict[Any, Function] = {}  # of symbolic variables of parameters
        self.defined: dict[Var, None] = {}
        self.in_dataflow = False
        self.visited: dict[Function, None] = {}
        self.depth = 0
        self.is_pure = False

    def report(self, text: str) -> None:
        self.problems.append(text)

    # ---- variables

    def visit_var_(self, op: Var) -> None:
        if op not in self.visible:
            self.report(f"variable {op.name_hint} is used outside of its scope")

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        if not self.in_dataflow:
            self.report(f"the dataflow variable {op.name_hint} is used outside a dataflow block")
        self.visit_var_(op)

    def visit_global_var_(self, op: GlobalVar) -> None:
        if self.mod is not None and self.mod.functions.get(op) is None:
            self.report(f"global variable {op.name_hint} is not defined in the module")
        if self.checks_struct_info and op.struct_info_ is not None:
            if not isinstance(op.struct_info_, FuncStructInfo):
                self.report(f"global variable {op.name_hint} is no function")

    def define(self, var: Var) -> None:
        if var in self.defined:
            self.report(f"variable {var.name_hint} is defined twice")
        self.defined[var] = self.visible[var] = None
        if var.struct_info_ is None:
            if self.checks_struct_info:
                self.report(f"variable {var.name_hint} has no struct info")
        else:
            self._struct_info(var.struct_info_)

    def visit_var_def_(self, var: Var) -> None:
        self.define(var)

    def visit_dataflow_var_def_(self, var: DataflowVar) -> None:
        if not self.in_dataflow:
            self.report(f"the dataflow variable {var.name_hint} is bound outside a dataflow block")
        self.define(var)

    # ---- symbolic variables

    def _struct_info(self, info: Any) -> None:
        if info is None or isinstance(info, FuncStructInfo):
            return
        if isinstance(info, TensorStructInfo) and isinstance(info.shape, Var):
            self.visit_expr(info.shape)
        self._symbols(info)

    def _symbols(self, node: Any) -> None:
        for var in tir_vars_in(node):
            if var not in self.symbols:
                self.report(f"symbolic variable {var.name} is used before it is defined")

    def visit_shape_expr_(self, op: ShapeExpr) -> None:
        self._symbols(op)

    def visit_prim_value_(self, op: PrimValue) -> None:
        self._symbols(op.value)

    # ---- expressions

    def _argument(self, expr: RelayExpr, what: str) -> None:
        if not is_leaf_or_tuple(expr):
            self.report(f"{what} is not in normal form: {type(expr).__name__}")
        self.visit_expr(expr)

    def visit_tuple_(self, op: Tuple) -> None:
        for field in op.fields:
            self._argument(field, "a field of a tuple")

    def visit_tuple_getitem_(self, op: TupleGetItem) -> None:
        self._argument(op.tuple_value, "the tuple of an item")

    def visit_call_(self, op: Call) -> None:
        self._argument(op.op, "the callee of a call")
        for arg in op.args:
            self._argument(arg, "the argument of a call")
        for info in op.sinfo_args:
            self._struct_info(info)
        if self.is_pure and self.in_dataflow and is_impure_call(op):
            self.report(f"a dataflow block has an impure call of {_name(op.op)}")
        validate = op.op.extra.get("FValidate") if isinstance(op.op, Op) else None
        if validate is not None and self.checks_struct_info:
            try:
                validate(op)
            except Exception as error:
                self.report(f"a call is not valid: {error}")
        normalize = op.op.extra.get("FNormalize") if isinstance(op.op, Op) else None
        if normalize is not None and op.struct_info_ is not None and _is_changed(normalize, op):
            self.report(f"the arguments of {_name(op.op)} are not in normal form")

    def visit_if_(self, op: If) -> None:
        if self.in_dataflow:
            self.report("a dataflow block has a choice")
        self._argument(op.cond, "the condition of a choice")
        for branch in (op.true_branch, op.false_branch):
            visible, symbols = dict(self.visible), dict(self.symbols)
            self.visit_expr(branch)
            self.visible, self.symbols = visible, symbols

    def visit_seq_expr_(self, op: SeqExpr) -> None:
        for block in op.blocks:
            self.visit_binding_block(block)
        self._argument(op.body, "the result of a sequence")
        for block in op.blocks:
            if isinstance(block, DataflowBlock):
                for binding in block.bindings:
                    if isinstance(binding.var, DataflowVar):
                        self.visible.pop(binding.var, None)
        if self.checks_struct_info and op.struct_info_ is None and op.body.struct_info_ is None:
            self.report("a sequence has no struct info")

    def visit_function_(self, op: Function) -> None:
        if op in self.visited:
            self.report("a function appears twice")
        self.visited[op] = None
        outer = dict(self.visible), dict(self.symbols), self.in_dataflow, self.is_pure
        self.in_dataflow = False
        self.is_pure = op.is_pure and not op.attrs.get(FORCE_PURE, False)
        own = [v for p in op.params for v in definable_tir_vars_in_struct_info(p.struct_info)]
        for var in own:
            if self.owners.setdefault(var, op) is not op and self.depth == 0:
                self.report(f"symbolic variable {var.name} belongs to several functions")
            self.symbols[var] = None
        self.depth += 1
        for param in op.params:
            if isinstance(param, DataflowVar):
                self.report(f"parameter {param.name_hint} is a dataflow variable")
            if isinstance(shape := getattr(param.struct_info_, "shape", None), Var):
                self.visible[shape] = None  # any shape, which the parameter gives a name
            self.define(param)
        if op.has_body:
            self._struct_info(op.ret_struct_info)
            self.visit_expr(op.body)
        self.depth -= 1
        if self.is_pure and op.has_body and (call := find_impure_call(op)) is not None:
            self.report(f"a pure function has an impure call of {_name(call.op)}")
        self.visible, self.symbols, self.in_dataflow, self.is_pure = outer

    def visit_extern_func_(self, op: ExternFunc) -> None:
        pass

    # ---- bindings

    def visit_binding_block_(self, block: BindingBlock) -> None:
        outer, self.in_dataflow = self.in_dataflow, False
        for binding in block.bindings:
            self.visit_binding(binding)
        self.in_dataflow = outer

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        outer, self.in_dataflow = self.in_dataflow, True
        for binding in block.bindings:
            self.visit_binding(binding)
        self.in_dataflow = outer

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, Function):
            self.defined[binding.var] = self.visible[binding.var] = None  # it may call itself
            self.visit_expr(value)
            return
        self.visit_expr(value)
        needs = not isinstance(value, (GlobalVar, Op))
        if self.checks_struct_info and needs and value.struct_info_ is None:
            self.report(f"the value of {binding.var.name_hint} has no struct info")
        self.visit_var_def(binding.var)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self._argument(binding.value, "the value of a checked binding")
        for var in definable_tir_vars_in_struct_info(binding.struct_info):
            self.symbols[var] = None
        self._struct_info(binding.struct_info)
        self.visit_var_def(binding.var)


def _is_changed(normalize: Any, call: Call) -> bool:
    """Whether an operator would bring a call into another form."""
    new = normalize(BlockBuilder(), call)
    return new is not call and not structural_equal(new, call)


def _name(callee: Any) -> str:
    for field in ("name", "name_hint", "global_symbol"):
        if (found := getattr(callee, field, None)) is not None:
            return str(found)
    return type(callee).__name__


@deep
def well_formed_problems(obj: IRModule | Function, check_struct_info: bool = True) -> list[str]:
    """What is wrong with a module or a function, in sentences."""
    if not isinstance(obj, IRModule):
        checker = _Checker(None, check_struct_info)
        checker.visit_expr(obj)
        return checker.problems
    checker = _Checker(obj, check_struct_info)
    symbols: dict[str, GlobalVar] = {}
    for gvar, func in obj.functions_items():
        symbol = func.attrs.get("global_symbol") if hasattr(func, "attrs") else None
        if symbol is not None and isinstance(func, Function):
            if str(symbol) != gvar.name_hint:
                checker.report(
                    f"function {gvar.name_hint} has the global_symbol {symbol!r}, which is not its name"
                )
            if symbols.setdefault(str(symbol), gvar) is not gvar:
                checker.report(f"two functions have the global_symbol {symbol!r}")
        if isinstance(func, Function):
            if gvar.struct_info_ is not None and gvar.struct_info_ != func.struct_info_:
                gvar.struct_info_ = func.struct_info_
            checker.visible, checker.symbols = {}, {}
            checker.visit_expr(func)
    return checker.problems


def well_formed(obj: IRModule | Function, check_struct_info: bool = True) -> bool:
    """Whether a module or a function is well formed.

    Variables are defined once, before they are used and where they are visible; arguments are in normal
    form; struct info is known; pure functions and dataflow blocks have no side effects.

    Parameters
    ----------
    obj : IRModule or Function
    check_struct_info : bool
        Whether missing struct info is a problem.
    """
    problems = well_formed_problems(obj, check_struct_info)
    for problem in problems:
        logging.warning("This IR is not well formed: %s", problem)
    return not problems
