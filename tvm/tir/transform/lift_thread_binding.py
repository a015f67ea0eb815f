"""Open a loop over threads once in a kernel, around all the places that have one over the same axis.

for k in range(4):                                   for tx in thread_binding(32, "threadIdx.x"):
    for tx in thread_binding(32, "threadIdx.x"):         for k in range(4):
        S[tx] = A[k, tx]                      ->             S[tx] = A[k, tx]
for ty in thread_binding(32, "threadIdx.x"):             B[tx] = S[31 - tx]
    B[ty] = S[31 - ty]

A kernel is the body of an outermost loop over threads. Nothing else may be done between the loops: each
thread would do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import LoweringError
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Visitor
from tvm.tir.expr import IterVar, Var
from tvm.tir.function import PrimFunc
from tvm.tir.op import cast
from tvm.tir.stmt import BufferStore, Evaluate, For, ForKind, IfThenElse, SeqStmt, Stmt
from tvm.tir.stmt_functor import BufferRewriter
from tvm.tir.transform.common import comes_from_te, fresh, prim_func_pass

Path = tuple[Stmt, ...]


class LoopFinder(Visitor):
    """The statements around each loop over threads, by the axis; the outermost one first."""

    def __init__(self) -> None:
        self.path: list[Stmt] = []
        self.found: dict[str, list[Path]] = {}
        self.effects: list[Path] = []  # what surrounds each statement that does something

    def visit(self, node: Any) -> Any:
        if not isinstance(node, Stmt):
            return super().visit(node)
        self.path.append(node)
        if isinstance(node, For) and node.kind is ForKind.THREAD_BINDING:
            self.found.setdefault(_tag(node), []).append(tuple(self.path))
        elif isinstance(node, (BufferStore, Evaluate)):
            self.effects.append(tuple(self.path))
        super().visit(node)
        self.path.pop()
        return None


def _tag(loop: For) -> str:
    assert isinstance(loop.thread_binding, IterVar)
    return loop.thread_binding.thread_tag


def common_statement(paths: Sequence[Path]) -> Stmt:
    """The innermost statement around the ends of all paths."""
    last = paths[0][0]
    for level in zip(*[path[:-1] for path in paths], strict=False):
        if any([stmt is not level[0] for stmt in level]):
            break
        last = level[0]
    return last


class ThreadLifter(BufferRewriter):
    """Opens loops at the places found, and leaves their bodies where they were."""

    def __init__(self, places: dict[int, list[For]], lifted: dict[int, Var]) -> None:
        super().__init__()
        self.places, self.lifted = places, lifted
        self.names: dict[Var, Any] = {}

    def visit_var(self, var: Var) -> Any:
        return self.names.get(var, var)

    def visit(self, node: Any) -> Any:
        new = super().visit(node)
        for loop in reversed(self.places.get(id(node), ())):
            new = loop.replace(body=new)
        return new

    def visit_for(self, loop: For) -> Stmt:
        var = self.lifted.get(id(loop))
        if var is None:
            return self.rewrite_children(loop)
        self.names[loop.loop_var] = cast(var, loop.loop_var.dtype)
        body: Stmt = self.visit(loop.body)
        return body


class KernelFinder(Visitor):
    """The bodies of the outermost loops over threads."""

    def __init__(self) -> None:
        self.found: list[Stmt] = []

    def visit_for(self, loop: For) -> None:
        if loop.kind is ForKind.THREAD_BINDING:
            self.found.append(loop.body)
        else:
            self.visit(loop.body)


def plan(body: Stmt) -> tuple[dict[int, list[For]], dict[int, Var]]:
    """Which loops are opened around which statements, and the variables for the loops that go."""
    finder = LoopFinder()
    finder.visit(body)
    places: dict[int, list[For]] = {}
    lifted: dict[int, Var] = {}
    for tag, paths in finder.found.items():
        if len(paths) < 2:
            continue
        loops = [path[-1] for path in paths]
        place, first = common_statement(paths), loops[0]
        assert isinstance(first, For)
        _check(tag, place, loops, finder.effects)
        var = fresh(first.loop_var)
        places.setdefault(id(place), []).append(first.replace(loop_var=var))
        lifted |= {id(loop): var for loop in loops}
    return places, lifted


def _check(tag: str, place: Stmt, loops: Sequence[Any], effects: Sequence[Path]) -> None:
    if not isinstance(place, (SeqStmt, IfThenElse)):
        raise LoweringError(f"{tag} needs one loop around a statement, got one inside another")
    first = loops[0]
    for loop in loops:
        if not structural_equal(loop.extent, first.extent):
            raise LoweringError(
                f"{tag} needs one extent in a kernel, got {first.extent} and {loop.extent}"
            )
    inside = {id(loop): None for loop in loops}
    for path in effects:
        around = [id(stmt) for stmt in path]
        if id(place) in around and not any([stmt in inside for stmt in around]):
            raise LoweringError(
                f"{tag} needs a loop around every statement of its kernel, each thread would run "
                f"{path[-1]}",
                hint="guard the statement by a loop over the threads and a condition on one of them",
            )


@prim_func_pass("tir.LiftThreadBinding")
def lift_thread_binding(func: PrimFunc) -> PrimFunc:
    """Merge loops over the same threads."""
    if comes_from_te(func):
        return func
    kernels = KernelFinder()
    kernels.visit(func.body)
    places: dict[int, list[For]] = {}
    lifted: dict[int, Var] = {}
    for kernel in kernels.found:
        opened, closed = plan(kernel)
        places |= opened
        lifted |= closed
    return func.with_body(ThreadLifter(places, lifted).visit(func.body)) if places else func


LiftThreadBinding = lift_thread_binding.factory
