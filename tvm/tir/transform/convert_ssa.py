"""Give every definition a variable of its own.

for i in range(4): A[i] = 0  ->    for i in range(4): A[i] = 0
for i in range(8): B[i] = 0        for i_1 in range(8): B[i_1] = 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.node import Node
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, PassInfo
from tvm.tir.analysis.verify_well_formed import ScopeChecker, symbols_of
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar, Let, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    DeclBuffer,
    Evaluate,
    For,
    LetStmt,
    Stmt,
)
from tvm.tir.stmt_functor import BufferRewriter, renew_defs
from tvm.tir.transform.common import fresh, variables_of

N = TypeVar("N", bound=Node)
# what stands for a body while the rest of its node is rewritten
ZERO = const(0, "int32")
EMPTY = Evaluate(ZERO)


class DefinitionSeparator(BufferRewriter):
    """Renames variables that have been defined before. Buffers are remade where their pointer is renamed."""

    def __init__(self, defined: Iterable[Var]) -> None:
        super().__init__()
        self.defined: dict[Var, None] = dict.fromkeys(defined)
        self.open = dict(self.defined)  # variables in scope
        self.names: dict[Var, Var] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        return super().buffer(buffer) if self.names else buffer

    def visit_var(self, var: Var) -> PrimExpr:
        return self.names.get(var, var)

    def visit_for(self, loop: For) -> Stmt:
        return self._define(loop, "loop_var", EMPTY)

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        return self._define(let, "var", EMPTY)

    def visit_let(self, let: Let) -> PrimExpr:
        return self._define(let, "var", ZERO)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        return self._define(alloc, "buffer_var", EMPTY)

    def visit_allocate_const(self, alloc: AllocateConst) -> Stmt:
        return self._define(alloc, "buffer_var", EMPTY)

    def visit_block(self, block: Block) -> Stmt:
        variables = [axis.var for axis in block.iter_vars]
        variables += [buffer.data for buffer in block.alloc_buffers]
        for match in block.match_buffers:
            # those in scope are compared with the region's
            variables += [var for var in symbols_of(match.buffer) if var not in self.open]
        with self._scope(dict.fromkeys(variables)):
            new: Stmt = super().visit_block(block)
            assert isinstance(new, Block)
            if any([axis.var in self.names for axis in new.iter_vars]):
                renamed = [axis.replace(var=self.visit_var(axis.var)) for axis in new.iter_vars]
                new = new.replace(iter_vars=tuple(renamed))
        return new

    def visit_decl_buffer(self, node: DeclBuffer) -> Stmt:
        self.buffer(node.buffer)  # the body finds it under the same name
        return super().visit_decl_buffer(node)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        node = attr.node
        if isinstance(node, Var) and node in self.names:
            attr = attr.replace(node=self.names[node])
        elif isinstance(node, IterVar) and node.var in self.names:
            attr = attr.replace(node=node.replace(var=self.names[node.var]))
        return self.rewrite_children(attr)

    def _define(self, node: N, name: str, nothing: Node) -> N:
        """The node, whose body alone is the scope of its variable."""
        var: Var = getattr(node, name)
        if var not in self.defined:
            with self._scope([var]):
                return self.rewrite_children(node)
        head = self.rewrite_children(node.replace(body=nothing))
        with self._scope([var]):
            body = self.visit(node.body)  # type: ignore[attr-defined]
            return head.replace(body=body, **{name: self.names[var]})

    @contextmanager
    def _scope(self, variables: Iterable[Var]) -> Iterator[None]:
        """The scope of definitions: those that have been made before have new names in it."""
        opened = [var for var in variables if var not in self.open]
        repeated = {var: fresh(var) for var in variables if var in self.defined}
        self.open.update(dict.fromkeys(opened))
        self.defined.update(dict.fromkeys(variables))
        hidden = {var: self.names[var] for var in repeated if var in self.names}
        buffers = self._buffers
        if repeated:
            self.names.update(repeated)
            # other buffers keep the name that they have here
            self._buffers = {
                a: b for a, b in buffers.items() if repeated.keys().isdisjoint(variables_in(a))
            }
        yield
        for var in repeated:
            del self.names[var]
        self.names.update(hidden)
        self._buffers = buffers
        for var in opened:
            del self.open[var]


def variables_in(buffer: Buffer) -> dict[Var, None]:
    """The variables that a buffer is described by."""
    found = variables_of(buffer)
    found[buffer.data] = None
    return found


def separate_definitions(body: Stmt, func: PrimFunc) -> Stmt:
    """A body for the function in which each variable is defined once, and none that the function defines."""
    separated: Stmt = DefinitionSeparator(defined_by_parameters(func)).visit(body)
    return separated


def defined_by_parameters(func: PrimFunc) -> dict[Var, None]:
    """The parameters of a function, and what binding their buffers gives values to."""
    found = dict.fromkeys(func.params)
    for buffer in func.buffer_map.values():
        found.update(dict.fromkeys(symbols_of(buffer)))
    return found


def convert_ssa(mod: IRModule, _: PassContext) -> IRModule:
    """Define each variable of a module once: in one place, of one function."""
    defined: dict[Var, None] = {}
    functions: dict[Any, Any] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            func = func.with_body(separate_definitions(func.body, func))
            if any([var in defined for var in definitions_of(func)]):
                func = renew_defs(func)
            defined.update(definitions_of(func))
        functions[gvar] = func
    same = all([func is mod.functions[gvar] for gvar, func in functions.items()])
    return mod if same else mod.with_functions(functions)


def definitions_of(func: PrimFunc) -> dict[Var, None]:
    """The variables that a function defines."""
    checker = ScopeChecker()
    checker.check(func)
    return checker.ended


def ConvertSSA() -> ModulePass:
    """The pass."""
    return ModulePass(convert_ssa, PassInfo(0, "tir.ConvertSSA"))
