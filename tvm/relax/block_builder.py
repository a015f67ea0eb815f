"""Builds relax programs binding by binding, in normal form.

bb = relax.BlockBuilder()
with bb.function("main", [x]):
    with bb.dataflow():
        lv = bb.emit(relax.op.exp(x))
        gv = bb.emit_output(relax.op.add(lv, x))
    bb.emit_func_output(gv)
mod = bb.finalize()
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.supply import NameSupply
from tvm.runtime.object import Object
from tvm.support import Scoped
from tvm.tir import PrimFunc
from tvm.tir import Var as TirVar

from .base import update_struct_info
from .expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    SeqExpr,
    Tuple,
    Var,
    VarBinding,
    as_expr,
)
from .global_names import with_symbol_names
from .normalize import Normalizer, erase_in_scope, infer_call
from .op.base import call_tir, call_tir_with_grad
from .prim_func_info import prim_func_struct_info
from .struct_info import StructInfo
from .struct_info_relations import erase, tir_vars_in
from .te_call import gen_call_tir_inputs

_CURRENT: Scoped[BlockBuilder] = Scoped("relax_block_builder")


class _Frame:
    """A block that is being built."""

    def __init__(self, is_dataflow: bool) -> None:
        self.is_dataflow = is_dataflow
        self.bindings: list[Binding] = []
        # id of an expression that was an argument -> it, and the variable that it is bound to
        self.normalized: dict[int, tuple[RelayExpr, RelayExpr]] = {}


class FunctionScope:
    """The scope of a function that is being built: ``with bb.function(...)``."""

    def __init__(
        self,
        block_builder: BlockBuilder,
        name: str,
        params: Any,
        attrs: Mapping[str, Any] | None,
        is_pure: bool,
        private: bool = False,
    ) -> None:
        self._bb = block_builder
        self._name = name
        self._params = params
        self._attrs = dict(attrs or {})
        self._is_pure = is_pure
        self._private = private
        self._blocks: list[BindingBlock] = []
        self._has_output = False
        self._token: Any = None

    def __enter__(self) -> None:
        self._bb._enter(self)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bb._leave(self, failed=kind is not None)


class DataflowScope:
    """The scope of a dataflow block: ``with bb.dataflow()``."""

    def __init__(self, block_builder: BlockBuilder) -> None:
        self._bb = block_builder

    def __enter__(self) -> None:
        self._bb._close_block()
        self._bb.begin_block(is_dataflow=True)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._bb._close_block()
        self._bb.begin_block(is_dataflow=False)


class TestingScope:
    """A scope in which variables are defined, without a function."""

    __test__ = False  # no test case of pytest

    def __init__(self, block_builder: BlockBuilder, def_vars: Any) -> None:
        self._bb = block_builder
        self._vars = def_vars if isinstance(def_vars, (list, tuple)) else [def_vars]

    def __enter__(self) -> None:
        self._bb.begin_scope(None)
        for var in self._vars:
            if isinstance(var, TirVar):
                self._bb.scopes[-1][var] = var
            else:
                self._bb._define(var.struct_info_)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._bb.end_scope()


class BlockBuilder(Object):
    """Builds functions of a module; every expression that is emitted is in normal form.

    Parameters
    ----------
    mod : IRModule, optional
        What functions are added to.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self._mod = IRModule() if mod is None else mod.clone()
        self._names = NameSupply()
        self._known: dict[Any, list[tuple[BaseFunc, GlobalVar]]] | None = None
        self._frames: list[_Frame] = []
        self._functions: list[FunctionScope] = []
        self._values: dict[Any, RelayExpr] = {}  # by identity of variables
        # symbolic variables that are visible, innermost scope last
        self.scopes: list[dict[Any, Any]] = []
        self._given: list[dict[Any, Any]] = []  # those at the begin of each scope
        self.normalizer = Normalizer(self)

    @staticmethod
    def current() -> BlockBuilder | None:
        """The builder of the innermost ``with bb.function()``, if there is one."""
        return _CURRENT.current()

    # ---- scopes

    def function(
        self,
        name: str,
        params: Var | Tuple | Sequence[Var] | None = None,
        attrs: Mapping[str, Any] | None = None,
        pure: bool = True,
        private: bool = False,
    ) -> FunctionScope:
        """A scope in which a function is built.

        Parameters
        ----------
        name : str
        params : Var or sequence of Var, optional
            The parameters, which may be given to `emit_func_output` instead.
        attrs : dict, optional
        pure : bool
            Whether the function has no side effects.
        private : bool
            Whether only the module's functions call it: it has no ``global_symbol``.
        """
        if isinstance(params, Var):
            params = [params]
        elif isinstance(params, (list, tuple, Tuple)):
            for param in params:
                if not isinstance(param, Var):
                    raise TypeError(
                        "each element of function parameters must be of type tvm.relax.Var, "
                        f"but got: {type(param)}"
                    )
        return FunctionScope(
            self, name, None if params is None else list(params), attrs, pure, private
        )

    def testing_scope(self, def_vars: Any) -> TestingScope:
        """A scope in which symbolic variables are defined."""
        return TestingScope(self, def_vars)

    def dataflow(self) -> DataflowScope:
        """A scope of a dataflow block."""
        return DataflowScope(self)

    def _enter(self, scope: FunctionScope) -> None:
        scope._token = _CURRENT.scope(self)
        scope._token.__enter__()
        self._functions.append(scope)
        self.begin_scope(scope._params)
        self.begin_block(is_dataflow=False)

    def _leave(self, scope: FunctionScope, failed: bool) -> None:
        self._functions.pop()
        scope._token.__exit__(None, None, None)
        if failed:
            return
        if not scope._has_output:
            raise RuntimeError("emit_func_output must be called in a relax function.")

    def _close_block(self) -> None:
        block = self.end_block()
        if block.bindings:
            if not self._functions:
                raise TVMError("a block requires a function: with bb.function(...)")
            self._functions[-1]._blocks.append(block)

    def begin_scope(self, params: Sequence[Var] | None = None) -> None:
        """Open a scope, in which the symbolic variables of parameters are visible."""
        self.scopes.append(dict(self.scopes[-1]) if self.scopes else {})
        for param in params or ():
            if param.struct_info_ is not None:
                for var in tir_vars_in(param.struct_info_):
                    self.scopes[-1][var] = var
        self._given.append(dict(self.scopes[-1]))

    def end_scope(self) -> None:
        """Close the innermost scope."""
        self.scopes.pop()
        self._given.pop()

    def _define(self, info: StructInfo | None) -> None:
        if self.scopes and info is not None:
            for var in tir_vars_in(info):
                self.scopes[-1][var] = var

    def erased(self, info: StructInfo) -> StructInfo:
        """Struct info without symbolic variables that are not visible in the current scope."""
        return erase_in_scope(info, self.scopes[-1] if self.scopes else None)

    # ---- blocks

    @property
    def frame(self) -> _Frame | None:
        """The innermost block that is being built."""
        return self._frames[-1] if self._frames else None

    def begin_block(self, is_dataflow: bool) -> None:
        """Open a block."""
        self._frames.append(_Frame(is_dataflow))

    def end_block(self) -> BindingBlock:
        """Close the innermost block."""
        frame = self._frames.pop()
        return (DataflowBlock if frame.is_dataflow else BindingBlock)(frame.bindings)

    # the names that classic programs use
    def _begin_dataflow_block(self) -> None:
        self.begin_block(is_dataflow=True)

    def _begin_binding_block(self) -> None:
        self.begin_block(is_dataflow=False)

    def _end_block(self) -> BindingBlock:
        return self.end_block()

    def current_block_is_dataflow(self) -> bool:
        """Whether the innermost block is a dataflow block."""
        return self.frame is not None and self.frame.is_dataflow

    # ---- emitting

    def emit(self, expr: Any, name_hint: str = "") -> Var:
        """Bind an expression to a new variable.

        Parameters
        ----------
        expr : Expr
        name_hint : str
            The variable's name, if it is free.

        Returns
        -------
        Var
        """
        return self.emit_normal(self.normalize(self._as_expr(expr)), name_hint)

    def emit_normal(self, expr: RelayExpr, name_hint: str = "", is_output: bool = False) -> Var:
        """Bind an expression that is in normal form."""
        frame = self.frame
        if frame is None:
            raise TVMError("an expression is emitted into a block: with bb.function(...)")
        is_local = frame.is_dataflow and not is_output
        name = self.get_unique_name(name_hint or ("lv" if is_local else "gv"))
        var = (DataflowVar if is_local else Var)(name, expr.struct_info)
        frame.bindings.append(VarBinding(var, expr))
        self._values[var.vid] = expr
        return var

    def _as_expr(self, value: Any) -> RelayExpr:
        expr = getattr(value, "_expr", value)  # a tensor of relax.frontend.nn
        if isinstance(expr, (list, tuple)):
            return Tuple([self._as_expr(item) for item in expr])
        found: RelayExpr = as_expr(expr)
        return found

    def emit_output(self, output: Any, name_hint: str = "") -> Var:
        """Bind an expression to a variable that is visible behind the dataflow block."""
        if not self.current_block_is_dataflow():
            raise TVMError("emit_output requires a dataflow block: with bb.dataflow()")
        return self.emit_normal(self.normalize(self._as_expr(output)), name_hint, is_output=True)

    def call_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Call:
        """A call of the loop program that a function of tensor expressions makes.

        Parameters
        ----------
        func : callable
            Such as ``topi.add``; its tensors come from relax expressions among the arguments.
        args, kwargs
            The arguments; ``primfunc_name_hint`` names the loop program, ``primfunc_attrs`` are its
            attributes.
        """
        name = kwargs.pop("primfunc_name_hint", None)
        attrs = kwargs.pop("primfunc_attrs", None)
        prim, call_args, info, numbers = gen_call_tir_inputs(func, *args, **kwargs)
        if attrs:
            prim = prim.with_attrs(attrs)
        gvar = self.add_func(prim, name or _function_name(func))
        return call_tir(gvar, call_args, info, numbers)

    def call_te_with_grad(
        self,
        func: Callable[..., Any],
        *args: Any,
        te_grad_name: str,
        te_grad_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> Call:
        """As `call_te`, with the name of the registered function that computes its gradient."""
        name = kwargs.pop("primfunc_name_hint", None)
        prim, call_args, info, numbers = gen_call_tir_inputs(func, *args, **kwargs)
        if numbers is not None:
            raise ValueError("call_te_with_grad requires no symbolic variables beside the tensors'")
        gvar = self.add_func(prim, name or _function_name(func))
        return call_tir_with_grad(gvar, call_args, info, te_grad_name, te_grad_kwargs)

    def emit_te(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """Bind what `call_te` makes; ``name_hint`` names the variable."""
        name_hint = kwargs.pop("name_hint", "")
        return self.emit(self.call_te(func, *args, **kwargs), name_hint)

    def emit_te_with_grad(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """Bind what `call_te_with_grad` makes."""
        return self.emit(self.call_te_with_grad(func, *args, **kwargs))

    def match_cast(self, value: Any, struct_info: StructInfo, name_hint: str = "") -> Var:
        """Bind a value that is checked at run time, which defines symbolic variables."""
        expr = self.normalizer.argument(self._as_expr(value))
        is_local = self.current_block_is_dataflow()
        name = self.get_unique_name(name_hint or ("lv" if is_local else "gv"))
        var = (DataflowVar if is_local else Var)(name, struct_info)
        self.emit_normalized(MatchCast(var, expr, struct_info))
        return var

    def emit_normalized(self, binding: Binding) -> None:
        """Add a binding that is in normal form."""
        if self.frame is None:
            raise TVMError("a binding is emitted into a block: with bb.function(...)")
        self.frame.bindings.append(binding)
        if isinstance(binding, MatchCast):
            self._define(binding.struct_info)
        self._values[binding.var.vid] = binding.value

    def emit_func_output(self, output: Any, params: Any = None) -> GlobalVar:
        """End the function that is being built.

        Parameters
        ----------
        output : Expr
            What it returns.
        params : Var or sequence of Var, optional
            The parameters, if they were not given before.
        """
        if not self._functions:
            raise RuntimeError("emit_func_output requires a function: with bb.function(...)")
        scope = self._functions[-1]
        scope._has_output = True
        if isinstance(params, Var):
            params = [params]
        if scope._params is not None and params is not None:
            raise RuntimeError("function parameters have been specified in function scope already")
        if scope._params is None and params is None:
            raise RuntimeError("a function requires parameters: bb.function(name, params)")
        if scope._params is None:
            scope._params = list(params)
            for param in scope._params:
                self._define(param.struct_info_)
                self._given[-1].update({v: v for v in tir_vars_in(param.struct_info)})
        result = self._as_expr(output)
        block = self.end_block()
        if block.bindings:
            scope._blocks.append(block)
        seq = self.normalize(SeqExpr(scope._blocks, result))
        given, kept = self._given[-1], {param: param for param in scope._params}
        info = erase(seq.struct_info, given.get, kept.get)
        func = Function(scope._params, seq, info, scope._is_pure)
        if not scope._private:
            func = func.with_attr("global_symbol", scope._name)
        if scope._attrs:
            func = func.with_attrs(scope._attrs)
        self.end_scope()
        return self.add_func(func, scope._name)

    # ---- normal form and struct info

    def normalize(self, expr: RelayExpr) -> RelayExpr:
        """The expression in normal form, with struct info.

        Raises
        ------
        TVMError
            If the arguments of a call do not fit.
        """
        return self.normalizer.visit(expr)

    def infer(self, call: Call) -> StructInfo:
        """The struct info of a call."""
        return infer_call(call, self)

    def struct_info_of_global(self, gvar: GlobalVar) -> StructInfo | None:
        """What is known of a function of the module, which its variable has from then on."""
        func = self._mod.functions.get(gvar)
        if func is not None:
            update_struct_info(gvar, function_struct_info(func))
        found: StructInfo | None = gvar.struct_info_
        return found

    def lookup_binding(self, var: Var) -> RelayExpr | None:
        """The value that a variable is bound to, as far as this builder knows."""
        return self._values.get(var.vid)

    # ---- the module

    def get_unique_name(self, name_prefix: str) -> str:
        """A name that neither a variable nor a function of this builder has."""
        return self._names.fresh_name(name_prefix, add_prefix=False, add_underscore=False)

    def get(self) -> IRModule:
        """The module as it is."""
        return self._mod.clone()

    def finalize(self) -> IRModule:
        """The module, with public functions under the names of their ``global_symbol``."""
        return with_symbol_names(self._mod.clone())

    def add_func(self, func: BaseFunc, func_name: str) -> GlobalVar:
        """Add a function; one that the module has already is found.

        Returns
        -------
        GlobalVar
        """
        known = self._functions_by_hash().setdefault(structural_hash(func), [])
        for other, gvar in known:
            if structural_equal(other, func):
                return gvar
        name = self.get_unique_name(func_name)
        while name in self._mod:
            name = self.get_unique_name(func_name)
        gvar = GlobalVar(name)
        update_struct_info(gvar, function_struct_info(func))
        self._mod[gvar] = func
        known.append((func, gvar))
        return gvar

    def _functions_by_hash(self) -> dict[Any, list[tuple[BaseFunc, GlobalVar]]]:
        if self._known is None:
            self._known = {}
            for gvar, func in self._mod.functions_items():
                self._known.setdefault(structural_hash(func), []).append((func, gvar))
        return self._known

    def update_func(self, gv: GlobalVar, updated_func: BaseFunc) -> None:
        """Replace a function."""
        self._mod.update_func(gv, updated_func)
        update_struct_info(gv, function_struct_info(updated_func))
        self._known = None


def function_struct_info(func: BaseFunc) -> StructInfo | None:
    """What a function takes and gives."""
    if isinstance(func, PrimFunc):
        return prim_func_struct_info(func)
    found: StructInfo | None = func.struct_info_
    return found


def _function_name(func: Any) -> str:
    """A name for what a function of te makes; a lambda's is no name of a program."""
    return re.sub(r"\W", "_", getattr(func, "__name__", "te_func"))
