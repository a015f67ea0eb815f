"""Give every definition a variable of its own.

for i in range(4): A[i] = 0  ->    for i in range(4): A[i] = 0
for i in range(8): B[i] = 0        for i_1 in range(8): B[i_1] = 0
"""

from __future__ import annotations

from typing import Any, TypeVar

from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.node import Node
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, PassInfo
from tvm.tir.analysis.verify_well_formed import ScopeChecker
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar, Let, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AllocateConst, AttrStmt, DeclBuffer, For, LetStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter, renew_defs
from tvm.tir.transform.common import fresh, variables_of

N = TypeVar("N", bound=Node)


class DefinitionSeparator(BufferRewriter):
    """Renames variables that have been defined before. Buffers are remade where their pointer is renamed."""

    def __init__(self, defined: tuple[Var, ...]) -> None:
        super().__init__()
        self.defined: dict[Var, None] = dict.fromkeys(defined)
        self.names: dict[Var, Var] = {}

    def buffer(self, buffer: Buffer) -> Buffer:
        return super().buffer(buffer) if self.names else buffer

    def visit_var(self, var: Var) -> PrimExpr:
        return self.names.get(var, var)

    def visit_for(self, loop: For) -> Stmt:
        return self._define(loop, "loop_var")

    def visit_let_stmt(self, let: LetStmt) -> Stmt:
        return self._define(let, "var")

    def visit_let(self, let: Let) -> PrimExpr:
        return self._define(let, "var")

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        return self._define(alloc, "buffer_var")

    def visit_allocate_const(self, alloc: AllocateConst) -> Stmt:
        return self._define(alloc, "buffer_var")

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

    def _define(self, node: N, name: str) -> N:
        var: Var = getattr(node, name)
        if var not in self.defined:
            self.defined[var] = None
            return self.rewrite_children(node)
        outer, outer_buffers = self.names.get(var), self._buffers
        self.names[var] = new = fresh(var)
        # other buffers keep the name that they have here
        self._buffers = {a: b for a, b in outer_buffers.items() if var not in variables_in(a)}
        node = self.rewrite_children(node).replace(**{name: new})
        self._buffers = outer_buffers
        if outer is None:
            del self.names[var]
        else:
            self.names[var] = outer
        return node


def variables_in(buffer: Buffer) -> dict[Var, None]:
    """The variables that a buffer is described by."""
    found = variables_of(buffer)
    found[buffer.data] = None
    return found


def separate_definitions(body: Stmt, defined: tuple[Var, ...] = ()) -> Stmt:
    """The statement with each variable defined once; ``defined`` have been defined outside."""
    separated: Stmt = DefinitionSeparator(defined).visit(body)
    return separated


def convert_ssa(mod: IRModule, _: PassContext) -> IRModule:
    """Define each variable of a module once: in one place, of one function."""
    defined: dict[Var, None] = {}
    functions: dict[Any, Any] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            func = func.with_body(separate_definitions(func.body, func.params))
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
