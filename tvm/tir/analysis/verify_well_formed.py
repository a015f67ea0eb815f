"""Whether every variable of a program is defined where it is used, once in the whole program.

Lowering repeats definitions side by side, in the copies of an unrolled loop: :func:`scope_problems`, which
checks what passes leave, takes those. What is defined again inside its own scope is wrong everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm.error import IllFormedError
from tvm.ir.module import IRModule
from tvm.ir.visitor import Visitor
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IterVar, Let, Reduce, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Allocate,
    AllocateConst,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferRegion,
    BufferStore,
    DeclBuffer,
    For,
    LetStmt,
)


def verify_well_formed(obj: PrimFunc | IRModule, assert_mode: bool = True) -> bool:
    """Whether the scopes of a function, or of all functions of a module, are in order.

    Parameters
    ----------
    obj : PrimFunc or IRModule
        What to check.
    assert_mode : bool
        Raise an error that tells what is wrong, rather than return False.
    """
    functions = obj.functions.values() if isinstance(obj, IRModule) else [obj]
    checker = ScopeChecker()
    for func in functions:
        if not isinstance(func, PrimFunc):
            continue
        checker.check(func)
        if problems := [*checker.problems, *checker.repeated]:
            if assert_mode:
                name = func.get_attr("global_symbol", "a function")
                raise IllFormedError(f"{name} is not well formed: {problems[0]}")
            return False
    return True


def scope_problems(func: PrimFunc) -> list[str]:
    """What is wrong with the scopes of a function that is being lowered, a line each."""
    checker = ScopeChecker()
    checker.check(func)
    return checker.problems


class ScopeChecker(Visitor):
    """Keeps the variables in scope, the buffers that have been declared, and how deep in blocks loops stand."""

    def __init__(self) -> None:
        self.scope: dict[Var, None] = {}
        self.ended: dict[Var, None] = {}  # variables whose scope is behind, in all functions so far
        self.launched: dict[Var, None] = {}  # the threads of this function
        self.buffers: dict[Buffer, None] = {}
        self.loop_depth: dict[Var, int] = {}
        self.block_depth = 0  # the number of blocks with axes around
        self.problems: list[str] = []
        self.repeated: list[str] = []  # definitions side by side, which unrolled loops have

    def check(self, func: PrimFunc) -> None:
        """Check one function."""
        self.launched = {}
        self._define(func.params)
        for buffer in func.buffer_map.values():
            self._declare(buffer)
            self._define_symbols(buffer)
        self.visit(func.body)
        self._forget(list(self.scope))

    # ---- uses

    def visit_var(self, var: Var) -> None:
        if var not in self.scope:
            why = "it is no longer in-scope" if var in self.ended else "nothing has defined it"
            self.problems.append(
                f"Invalid use of undefined variable {var.name} at a place where {why}."
            )
        elif self.loop_depth.get(var, self.block_depth) < self.block_depth:
            self.problems.append(
                f"loop variable {var.name} is used in a block inside of the loop; only bindings of"
                " the block's axes may use it"
            )

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self._use(load.buffer)
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self._use(store.buffer)
        self.visit_children(store)

    def visit_buffer_region(self, region: BufferRegion) -> None:
        self._use(region.buffer)
        self.visit_children(region)

    def _use(self, buffer: Buffer) -> None:
        if buffer not in self.buffers:  # then it is a view of memory in scope
            self.visit(buffer.data)

    # ---- definitions

    def visit_for(self, loop: For) -> None:
        self.visit(loop.min)
        self.visit(loop.extent)
        self.loop_depth[loop.loop_var] = self.block_depth
        self._inside([loop.loop_var], loop.body)

    def visit_let_stmt(self, let: LetStmt) -> None:
        self.visit(let.value)
        self._inside([let.var], let.body)

    def visit_let(self, let: Let) -> None:
        self.visit(let.value)
        self._inside([let.var], let.body)

    def visit_reduce(self, reduce: Reduce) -> None:
        variables = [axis.var for axis in reduce.axis]
        self._define(variables)
        for source in (*reduce.source, *reduce.init, reduce.condition):
            self.visit(source)
        self._forget(variables)

    def visit_allocate(self, alloc: Allocate) -> None:
        for extent in alloc.extents:
            self.visit(extent)
        self.visit(alloc.condition)
        self._inside([alloc.buffer_var], alloc.body)

    def visit_allocate_const(self, alloc: AllocateConst) -> None:
        self._inside([alloc.buffer_var], alloc.body)

    def visit_decl_buffer(self, decl: DeclBuffer) -> None:
        self.visit(decl.buffer.data)
        self._declare(decl.buffer)
        self.visit(decl.body)

    def visit_buffer_realize(self, realize: BufferRealize) -> None:
        for bound in realize.bounds:
            self.visit_children(bound)
        self._declare(realize.buffer)
        pointer = realize.buffer.data
        # around memory that is there, the statement only tells what region is used
        self._inside([] if pointer in self.scope else [pointer], realize.body)

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        self.visit(attr.value)
        axis = attr.node
        # other attributes of an axis, such as pragmas, stand around the loop that defines it
        opens = attr.attr_key in ("thread_extent", "virtual_thread")
        if opens and isinstance(axis, IterVar) and axis.var not in self.scope:
            if axis.var in self.launched:
                self.ended.pop(
                    axis.var, None
                )  # one variable stands for a thread in all its kernels
            self.launched[axis.var] = None
            self._inside([axis.var], attr.body)
        elif attr.attr_key == "buffer_bind_scope":
            view = attr.node[0]
            self._declare(view)
            self._inside([var for var in symbols_of(view) if var not in self.scope], attr.body)
        else:
            self.visit(attr.body)

    def visit_block_realize(self, realize: BlockRealize) -> None:
        for value in realize.iter_values:
            self.visit(value)
        self.visit(realize.predicate)
        self.visit(realize.block)

    def visit_block(self, block: Block) -> None:
        variables = [axis.var for axis in block.iter_vars]
        self._define(variables)
        self.block_depth += bool(variables)
        for buffer in block.alloc_buffers:
            self._define([buffer.data])
            self._declare(buffer)
            variables.append(buffer.data)
        for match in block.match_buffers:
            self.visit(match.source)
            self._declare(match.buffer)
            new = [var for var in symbols_of(match.buffer) if var not in self.scope]
            self._define(new)
            variables += new
        for region in (*block.reads, *block.writes):
            self.visit(region)
        if block.init is not None:
            self.visit(block.init)
        self.visit(block.body)
        self.block_depth -= bool(block.iter_vars)
        self._forget(variables)

    def _inside(self, variables: Iterable[Var], body: Any) -> None:
        self._define(variables)
        self.visit(body)
        self._forget(variables)

    def _define(self, variables: Iterable[Var]) -> None:
        for var in variables:
            if var in self.scope:
                self.problems.append(
                    f"TIR is ill-formed, due to multiple nested definitions of variable {var.name}"
                )
            elif var in self.ended:
                self.repeated.append(
                    f"TIR is ill-formed, due to multiple definitions of variable {var.name}"
                )
            self.scope[var] = None

    def _forget(self, variables: Iterable[Var]) -> None:
        for var in variables:
            self.scope.pop(var, None)
            self.ended[var] = None

    def _declare(self, buffer: Buffer) -> None:
        self.buffers[buffer] = None

    def _define_symbols(self, buffer: Buffer) -> None:
        self._define([var for var in symbols_of(buffer) if var not in self.scope])


def symbols_of(buffer: Buffer) -> list[Var]:
    """The variables that binding a buffer gives values to."""
    candidates = [buffer.data, *buffer.shape, *buffer.strides, buffer.elem_offset]
    return [found for found in dict.fromkeys(candidates) if isinstance(found, Var)]
