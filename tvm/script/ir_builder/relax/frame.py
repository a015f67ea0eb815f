"""The frames of relax programs: functions, blocks, branches."""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.visitor import Rewriter
from tvm.relax import expr as rx
from tvm.relax.base import StructInfo, update_struct_info
from tvm.relax.block_builder import BlockBuilder, function_struct_info
from tvm.relax.normalize import erase_in_scope, is_leaf_or_tuple
from tvm.relax.struct_info import FuncStructInfo, TupleStructInfo
from tvm.relax.struct_info_relations import BaseCheckResult, struct_info_base_check, tir_vars_in

from ..base import IRBuilder, IRBuilderFrame, namer
from ..ir.frame import IRModuleFrame


class _ScriptBuilder(BlockBuilder):
    """Knows the loop programs of the module that is being read, which may be defined later.

    Calls stay as they are written: what operators would make of them is for passes to do.
    """

    def __init__(self) -> None:
        super().__init__()
        self.normalizer.apply_operator_rules = False

    def struct_info_of_global(self, gvar: GlobalVar) -> StructInfo | None:
        module = IRBuilder.current().find_frame(IRModuleFrame)
        if module is None or gvar not in module.functions:
            return super().struct_info_of_global(gvar)
        func = module.functions[gvar]
        if func is not None:
            return function_struct_info(func)
        # functions of relax are declared with their signature
        return FuncStructInfo.opaque_func(ret=TupleStructInfo([]))


def name_variable(name: str, var: rx.Var) -> None:
    """Name a variable that was made for the program."""
    object.__setattr__(var.vid, "name_hint", name)


namer.provide(rx.Var, name_variable)


class RelaxFrame(IRBuilderFrame):
    """The base of all of them."""


class SeqExprFrame(RelaxFrame):
    """Blocks, and a result."""

    def __init__(self) -> None:
        super().__init__()
        self.binding_blocks: list[rx.BindingBlock] = []
        self.output: Any = None

    def close_block(self) -> None:
        """End the block that is open without a ``with``."""
        last = IRBuilder.current().frames[-1]
        if isinstance(last, BlockFrame) and not last.is_dataflow:
            last.close()

    def close(self) -> None:
        self.close_block()
        super().close()


class FunctionFrame(SeqExprFrame):
    """A function.

    Parameters
    ----------
    is_pure : bool
        Whether it has no side effects.
    is_private : bool
        Whether only the module calls it.
    """

    def __init__(self, is_pure: bool = True, is_private: bool = False) -> None:
        super().__init__()
        self.is_pure = is_pure
        self.is_private = is_private
        self.name: str | None = None
        self.params: list[rx.Var] = []
        self.attrs: dict[str, Any] = {}
        self.ret_struct_info: StructInfo | None = None
        self.block_builder = _ScriptBuilder()

    def __enter__(self) -> FunctionFrame:
        super().__enter__()
        self.block_builder.begin_scope(None)
        return self

    def finish(self) -> None:
        if self.output is None:
            raise ValueError(
                "A Relax function must have a return value. Please use `return` to return an Expr"
            )
        bb = self.block_builder
        bb.begin_scope(self.params)
        body = bb.normalize(rx.SeqExpr(self.binding_blocks, self.output))
        info = self.ret_struct_info
        if info is None:
            info = erase_in_scope(body.struct_info, self._symbols_of_callers())
        bb.end_scope()
        bb.end_scope()
        builder = IRBuilder.current()
        module = builder.last_frame(IRModuleFrame)
        is_top = module is not None or not builder.frames
        attrs = dict(self.attrs)
        if is_top and not self.is_private and self.name is not None:
            attrs.setdefault("global_symbol", self.name)
        func = rx.Function(self.params, body, info, self.is_pure, attrs)
        if module is None:
            builder.set_result(func)
            return
        assert self.name is not None
        if self.name not in module.global_var_map:
            module.global_var_map[self.name] = rx.GlobalVar(self.name)
        gvar = module.global_var_map[self.name]
        update_struct_info(gvar, func.struct_info_)
        if module.functions.get(gvar) is not None:
            raise ValueError(f"function {self.name} is defined already")
        module.functions[gvar] = func

    def _symbols_of_callers(self) -> dict[Any, Any]:
        """The symbolic variables that are known where the function is called."""
        found = {v: v for p in self.params for v in tir_vars_in(p.struct_info)}
        for frame in IRBuilder.current().frames:
            if isinstance(frame, FunctionFrame) and frame is not self:
                found.update(frame.block_builder.scopes[-1])
        return found


class BlockFrame(RelaxFrame):
    """A block of bindings.

    Parameters
    ----------
    is_dataflow : bool
    """

    def __init__(self, is_dataflow: bool) -> None:
        super().__init__()
        self.is_dataflow = is_dataflow
        self.emitted_vars: list[rx.Var] = []
        self.output_vars: list[rx.Var] = []
        self.block_ended = False

    def __enter__(self) -> BlockFrame:
        builder = IRBuilder.current()
        last = builder.frames[-1] if builder.frames else None
        if self.is_dataflow and isinstance(last, BlockFrame):
            if last.is_dataflow:
                raise ValueError("a dataflow block cannot be inside another one")
            last.close()
        super().__enter__()
        self.builder().begin_block(self.is_dataflow)
        return self

    @staticmethod
    def builder() -> BlockBuilder:
        """The block builder of the function."""
        return function_frame().block_builder

    def finish(self) -> None:
        block = self.builder().end_block()
        if self.is_dataflow and self.output_vars:
            replaced = {v: rx.Var(v.vid, v.struct_info_) for v in self.output_vars}
            block = _Replacer(replaced).visit(block)
            self.output_vars = [replaced[v] for v in self.output_vars]
        parent = IRBuilder.current().find_frame(SeqExprFrame)
        if parent is None:
            raise ValueError("a block requires a function around it")
        if block.bindings:
            parent.binding_blocks.append(block)


class _Replacer(Rewriter):
    """Puts variables for others, where they are bound too."""

    def __init__(self, variables: dict[rx.Var, rx.Var]) -> None:
        self.variables = variables

    def visit_dataflow_var(self, var: rx.Var) -> rx.Var:
        return self.variables.get(var, var)

    def visit_binding(self, binding: rx.Binding) -> rx.Binding:
        new = self.rewrite_children(binding)
        var = self.variables.get(new.var)
        return new if var is None else new.replace(var=var)


class IfFrame(RelaxFrame):
    """A choice.

    Parameters
    ----------
    condition : Expr
    """

    def __init__(self, condition: Any) -> None:
        super().__init__()
        self.condition = condition
        self.then_expr: rx.SeqExpr | None = None
        self.else_expr: rx.SeqExpr | None = None
        self.var: rx.Var | None = None
        self.var_name = ""

    def __enter__(self) -> IfFrame:
        block_frame()
        super().__enter__()
        return self

    def finish(self) -> None:
        if self.then_expr is None or self.else_expr is None:
            missing = "true" if self.then_expr is None else "else"
            raise ValueError(f"If requires both branches, the {missing} branch is missing")
        made = rx.If(self.condition, self.then_expr, self.else_expr)
        self.var = emit(made)
        IRBuilder.name(self.var_name, self.var)


class _BranchFrame(SeqExprFrame):
    """A branch; what its last binding defines is its value."""

    def _expression(self) -> rx.SeqExpr:
        if self.output is None:
            if not self.binding_blocks:
                raise ValueError("a branch of If requires a binding at its end")
            last = self.binding_blocks[-1].bindings[-1]
            name, value = last.var.name_hint, last.value
            rest = self.binding_blocks[-1].bindings[:-1]
            blocks = self.binding_blocks[:-1]
            if isinstance(last, rx.MatchCast) or not is_leaf_or_tuple(value):
                rest, value = (*rest, last), last.var
            if rest:
                blocks = [*blocks, type(self.binding_blocks[-1])(rest)]
            self.name = name
            return rx.SeqExpr(blocks, value)
        return rx.SeqExpr(self.binding_blocks, self.output)

    name: str = ""

    def parent(self) -> IfFrame:
        """The choice that it belongs to."""
        frame = IRBuilder.current().last_frame(IfFrame)
        if frame is None:
            raise ValueError("Then and Else require an If around them")
        return frame


class ThenFrame(_BranchFrame):
    """What is done where the condition holds."""

    def finish(self) -> None:
        frame = self.parent()
        if frame.then_expr is not None:
            raise ValueError("Duplicate then branch declaration")
        frame.then_expr = self._expression()
        frame.var_name = self.name


class ElseFrame(_BranchFrame):
    """What is done elsewhere."""

    def finish(self) -> None:
        frame = self.parent()
        if frame.then_expr is None:
            raise ValueError("The else branch must follow the then branch")
        if frame.else_expr is not None:
            raise ValueError("Duplicate else branch declaration")
        frame.else_expr = self._expression()
        if frame.var_name != self.name:
            raise ValueError(
                "The last binding of both branches must have the same variable, "
                f"got {frame.var_name} and {self.name}"
            )


def function_frame() -> FunctionFrame:
    """The function that is being built."""
    frame = IRBuilder.current().find_frame(FunctionFrame)
    if frame is None:
        raise ValueError("this requires a relax function around it: with R.function(): ...")
    return frame


def block_frame() -> BlockFrame:
    """The block that is open; one is opened if there is none."""
    last = IRBuilder.current().frames[-1] if IRBuilder.current().frames else None
    if isinstance(last, BlockFrame):
        if last.block_ended:
            raise ValueError("a dataflow block ends with R.output; nothing follows it there")
        return last
    function_frame()
    frame = BlockFrame(is_dataflow=False)
    frame.__enter__()
    return frame


def emit(value: RelayExpr, annotation: StructInfo | None = None) -> rx.Var:
    """Bind an expression in the open block."""
    frame = block_frame()
    if annotation is not None:
        if value.struct_info_ is None:
            update_struct_info(value, annotation)
        else:
            _check_annotation(value, annotation)
    var = frame.builder().emit(value)
    frame.emitted_vars.append(var)
    return var


def _check_annotation(value: RelayExpr, annotation: StructInfo) -> None:
    if struct_info_base_check(annotation, value.struct_info) is BaseCheckResult.FAIL_L0:
        raise ValueError(
            f"Invalid annotation. Got rhs value struct info: {value.struct_info}, "
            f"given struct info: {annotation}"
        )


__all__ = [
    "BlockFrame", "ElseFrame", "FunctionFrame", "IfFrame", "RelaxFrame", "SeqExprFrame",
    "ThenFrame", "block_frame", "emit", "function_frame",
]  # fmt: skip
