"""Changing the bindings of one dataflow block of a function."""

from __future__ import annotations

from typing import Any

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relax.analysis.unused import without_unused
from tvm.relax.analysis.variables import all_vars, used_vars
from tvm.relax.bind import substituted
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Function,
    Var,
    VarBinding,
    as_expr,
)
from tvm.relax.expr_functor import ExprMutatorBase, ExprVisitor
from tvm.runtime.object import Object
from tvm.support import deep


class _Blocks(ExprVisitor):
    """The dataflow blocks of a function, in the order met."""

    def __init__(self) -> None:
        self.found: list[DataflowBlock] = []

    def visit_dataflow_block_(self, block: DataflowBlock) -> None:
        self.found.append(block)
        super().visit_dataflow_block_(block)


def _blocks_of(func: Function) -> list[DataflowBlock]:
    visitor = _Blocks()
    visitor.visit_expr(func)
    return visitor.found


class _Replacer(ExprMutatorBase):
    def __init__(self, old: BindingBlock, new: BindingBlock) -> None:
        self.old = old
        self.new = new

    def visit_dataflow_block_(self, block: Any) -> Any:
        return self.new if block is self.old else super().visit_dataflow_block_(block)


class DataflowBlockRewrite(Object):
    """Changes of a dataflow block; the block and the function given stay as they are.

    Parameters
    ----------
    dfb : DataflowBlock
        The block.
    root_fn : Function
        The function that has it.
    """

    def __init__(self, dfb: DataflowBlock, root_fn: Function) -> None:
        if not any([block is dfb for block in _blocks_of(root_fn)]):
            raise TVMError("DataflowBlockRewrite requires a block of the function that is given")
        self._dfb = dfb
        self._root_fn = root_fn
        self._given = root_fn

    @deep
    def replace_all_uses(self, old_var: Var, new_var: Var) -> None:
        """Use one variable wherever another one is used in the function."""
        index = [block is self._dfb for block in _blocks_of(self._root_fn)].index(True)
        self._root_fn = substituted(self._root_fn, {old_var: new_var})
        self._dfb = _blocks_of(self._root_fn)[index]

    def add_binding(self, binding: Binding) -> None:
        """Put a binding at the end of the block."""
        self._set(self._dfb.replace(bindings=(*self._dfb.bindings, binding)))

    def add(self, expr: RelayExpr, name: str | None = None, is_dfvar: bool = False) -> None:
        """Bind an expression to a new variable at the end of the block.

        Parameters
        ----------
        expr : Expr
        name : str, optional
            The variable's name, which no other one may have.
        is_dfvar : bool
            Whether only the block knows it.
        """
        taken = {var.name_hint for var in all_vars(self._root_fn)}
        if name is None:
            stem = "lv" if is_dfvar else "gv"
            name = next(n for i in range(len(taken) + 1) if (n := f"{stem}{i or ''}") not in taken)
        elif name in taken:
            raise TVMError(f"the function has a variable called {name!r} already")
        value = as_expr(expr)
        builder = BlockBuilder()
        builder.begin_block(is_dataflow=True)
        value = builder.normalize(value)
        before = builder.end_block().bindings
        var = (DataflowVar if is_dfvar else Var)(name, value.struct_info)
        bindings = (*self._dfb.bindings, *before, VarBinding(var, value))
        self._set(self._dfb.replace(bindings=bindings))

    def remove_unused(self, var: Var, allow_undef: bool = False) -> None:
        """Remove the binding of a variable that nothing uses.

        Parameters
        ----------
        var : Var
        allow_undef : bool
            Whether the block may have no such variable.

        Raises
        ------
        TVMError
            If it is used, or the block has none.
        """
        rest = [b for b in self._dfb.bindings if b.var is not var]
        if len(rest) == len(self._dfb.bindings):
            if allow_undef:
                return
            raise TVMError(f"remove_unused requires a variable of the block, got {var.name_hint}")
        if var in used_vars(self._root_fn):
            raise TVMError(
                f"remove_unused requires a variable that nothing uses, got {var.name_hint}"
            )
        self._set(self._dfb.replace(bindings=tuple(rest)))

    def remove_all_unused(self) -> None:
        """Remove the bindings of the block whose variables nothing uses."""
        without = _Replacer(self._dfb, self._dfb.replace(bindings=())).visit_expr(self._root_fn)
        self._set(without_unused(self._dfb, used_vars(without)))

    @deep
    def _set(self, block: BindingBlock) -> None:
        if block is self._dfb:
            return
        new = _Replacer(self._dfb, block).visit_expr(self._root_fn)
        self._root_fn = BlockBuilder().normalize(new)  # type: ignore[assignment]
        self._dfb = block  # type: ignore[assignment]

    def mutated_dfb(self) -> DataflowBlock:
        """The block as it is now."""
        return self._dfb

    def mutated_root_fn(self) -> Function:
        """The function as it is now."""
        return self._root_fn

    def mutate_irmodule(self, irmodule: IRModule) -> IRModule:
        """A module with the function as it is now in the place of the one given."""
        found = [g for g, f in irmodule.functions.items() if f is self._given]
        if not found:
            raise TVMError("mutate_irmodule requires a module that has the function")
        return irmodule.with_functions(
            {g: self._root_fn if g in found else f for g, f in irmodule.functions.items()}
        )
