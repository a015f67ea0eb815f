"""Mark the beginning and end of functions and loops for a light-weight profiler.

for i in range(8):           ->    start_profile_intrinsic(1)
    for j in range(8): ...         for i in range(8):
                                       for j in range(8): ...
                                   end_profile_intrinsic(1)

By default the function and loops with loops in them and beside them are marked, each with an identifier of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.transform import ModulePass, PassInfo
from tvm.ir.visitor import Rewriter
from tvm.tir.builtin import end_profile_intrinsic, start_profile_intrinsic
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Evaluate, For, SeqStmt, Stmt, seq
from tvm.tir.transform.common import contains

register_pass_config("tir.lwp_disable_func_prof", bool)  # leave whole functions unmarked
register_pass_config("tir.lwp_max_depth", int)  # loops nested deeper are unmarked; 0: any depth
register_pass_config("tir.lwp_min_height", int)  # loops with fewer loops inside them are unmarked
register_pass_config("tir.instr_siblings", bool)  # False: mark loops that stand alone too
register_pass_config("tir.reset_start_id", bool)  # number each function's marks from 1


@dataclass(frozen=True)
class ProfileOptions:
    """What is marked."""

    functions: bool
    max_depth: int
    min_height: int
    siblings: bool


class LoopMarker(Rewriter):
    """Puts marks around loops."""

    def __init__(self, options: ProfileOptions, first: int) -> None:
        self.options = options
        self.next = first
        self.depth = 0
        self.beside = False

    def visit_for(self, loop: For) -> Stmt:
        beside, self.beside = self.beside, False
        wanted = self._is_wanted(loop, beside)
        number = self.number() if wanted else 0
        self.depth += 1
        loop = self.rewrite_children(loop)
        self.depth -= 1
        return between(loop, number) if wanted else loop

    def visit_seq_stmt(self, block: SeqStmt) -> Stmt:
        loops = sum([contains(stmt, is_loop) for stmt in block.seq])
        stmts = []
        for stmt in block.seq:
            self.beside = loops > 1
            stmts.append(self.visit(stmt))
        self.beside = False
        if all([new is old for new, old in zip(stmts, block.seq, strict=True)]):
            return block
        return seq(stmts)

    def visit_prim_expr(self, e: PrimExpr) -> PrimExpr:
        return e

    def number(self) -> int:
        """The next identifier."""
        self.next += 1
        return self.next - 1

    def _is_wanted(self, loop: For, beside: bool) -> bool:
        if self.options.siblings and not beside:
            return False
        if 0 < self.options.max_depth <= self.depth:
            return False
        return height(loop) >= self.options.min_height


def is_loop(node: object) -> bool:
    """Whether a node is a loop."""
    return isinstance(node, For)


def height(loop: For) -> int:
    """How many loops are nested inside a loop."""
    return max([1 + height(inner) for inner in outermost_loops(loop.body)], default=0)


def outermost_loops(stmt: Stmt) -> list[For]:
    """The loops of a statement that are in no other loop of it."""
    if isinstance(stmt, For):
        return [stmt]
    inner = [child for child in stmt.children() if isinstance(child, Stmt)]
    return [loop for child in inner for loop in outermost_loops(child)]


def between(stmt: Stmt, number: int) -> Stmt:
    """A statement between the marks of its beginning and end."""
    begin, end = start_profile_intrinsic(number), end_profile_intrinsic(number)
    return seq([Evaluate(begin), stmt, Evaluate(end)])


def instrument_profile(mod: IRModule, context: PassContext) -> IRModule:
    """Mark the functions of a module."""
    options = ProfileOptions(
        not context.get("tir.lwp_disable_func_prof", False),
        context.get("tir.lwp_max_depth", 0),
        context.get("tir.lwp_min_height", 1),
        context.get("tir.instr_siblings", True),
    )
    reset = context.get("tir.reset_start_id", False)
    functions, first = {}, 1
    for gvar, func in mod.functions.items():
        if isinstance(func, PrimFunc):
            marker = LoopMarker(options, 1 if reset else first)
            number = marker.number() if options.functions else 0
            body = marker.visit(func.body)
            func = func.with_body(between(body, number) if options.functions else body)
            first = marker.next
        functions[gvar] = func
    return mod.with_functions(functions)


_INSTRUMENT_PROFILE_INTRINSICS = PassInfo(0, "tir.InstrumentProfileIntrinsics")


def InstrumentProfileIntrinsics() -> ModulePass:
    """The pass."""
    return ModulePass(instrument_profile, _INSTRUMENT_PROFILE_INTRINSICS)
