"""What pass files share: the declaration of a pass, and small questions about nodes.

    @prim_func_pass("tir.UnrollLoop", UnrollLoopConfig)
    def unroll_loop(func: PrimFunc, config: UnrollLoopConfig) -> PrimFunc: ...

    UnrollLoop = unroll_loop.factory

The function can be called directly; the factory makes the pass that a ``Sequential`` takes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.ir.module import IRModule
from tvm.ir.node import Node
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.transform import FunctionPass, PassInfo
from tvm.ir.visitor import Visitor
from tvm.tir.analysis.safety import is_safe_anywhere
from tvm.tir.constants import is_const as is_const
from tvm.tir.expr import BufferLoad, Call, FloatImm, IntImm, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import BufferStore, Evaluate, For, SeqStmt, Stmt, seq

IF_THEN_ELSE = INTRINSICS["if_then_else"]
LIKELY = INTRINSICS["likely"]
ADDRESS_OF = INTRINSICS["address_of"]
ASSUME = INTRINSICS["assume"]

# of a loop that is to be split where its conditions change, as annotation or attribute
LOOP_PARTITION_HINT = "pragma_loop_partition_hint"


class PrimFuncPass(FunctionPass):
    """A pass that rewrites each loop-level function on its own."""

    def __init__(
        self, transform: Callable[[Any, IRModule, PassContext], Any], info: PassInfo
    ) -> None:
        super().__init__(transform, info, PrimFunc)


class DeclaredPass:
    """A function from PrimFunc to PrimFunc, its name, and the record of its options."""

    def __init__(self, function: Callable[..., PrimFunc], name: str, options: Any) -> None:
        self.function = function
        self.name = name
        self.info = PassInfo(0, name)
        self.options = options
        self.__doc__ = function.__doc__

    def __call__(self, func: PrimFunc, config: Any = None) -> PrimFunc:
        """Run on one function, with the given options or the current context's."""
        if self.options is None:
            return self.function(func)
        if config is None:
            config = PassContext.current().options(self.name, self.options)
        return self.function(func, config)

    def factory(self, *args: Any, **kwargs: Any) -> PrimFuncPass:
        """The pass. Arguments are options in the order of the record; they override the context's."""
        given = self._given(args, kwargs)

        def run(func: PrimFunc, _: IRModule, context: PassContext) -> PrimFunc:
            if self.options is None:
                return self.function(func)
            config = context.options(self.name, self.options)
            return self.function(func, replace(config, **given) if given else config)

        return PrimFuncPass(run, self.info)

    def _given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = [] if self.options is None else [field.name for field in fields(self.options)]
        if len(args) > len(names) or (unknown := [name for name in kwargs if name not in names]):
            got = list(args) if len(args) > len(names) else unknown
            raise TypeError(f"{self.name} takes the options {names}, got {got}")
        return {**dict(zip(names, args, strict=False)), **kwargs}


def prim_func_pass(name: str, options: Any = None) -> Callable[[Callable[..., Any]], DeclaredPass]:
    """Declare a pass: its name, and the record of its options, which ``PassContext`` then accepts."""
    if options is not None:
        register_pass_config(name, options)
    return lambda function: DeclaredPass(function, name, options)


# ---- questions about nodes

TRUE = const(True, "bool")


def as_int(e: Any) -> int:
    """The value of a constant that must be one."""
    if isinstance(e, int):
        return e
    if type(e) is not IntImm:
        raise ScheduleError(f"a constant integer is required, got {e}")
    return e.value


def is_constant(e: Any) -> bool:
    """Whether ``e`` is a number."""
    return type(e) is IntImm or type(e) is FloatImm


def without_likely(condition: PrimExpr) -> PrimExpr:
    """A condition without the hint that it mostly holds."""
    if isinstance(condition, Call) and condition.op is LIKELY:
        return condition.args[0]
    return condition


def assumption(stmt: object) -> PrimExpr | None:
    """What a statement assumes, if it does."""
    if not isinstance(stmt, Evaluate) or not isinstance(stmt.value, Call):
        return None
    return stmt.value.args[0] if stmt.value.op is ASSUME else None


def rewrite_under_assumptions(
    block: SeqStmt, rewrite: Callable[[Stmt], Stmt], analyzer: Analyzer
) -> Stmt:
    """The statements rewritten in order, each while what those before it assume is known.

    Memory may change on the way, so only what is said of variables is kept.
    """
    stmts: list[Stmt] = []
    with ExitStack() as assumed:
        for stmt in block.seq:
            stmts.append(rewrite(stmt))
            fact = assumption(stmt)
            if fact is not None and is_safe_anywhere(fact):
                assumed.enter_context(analyzer.constraint_scope(fact))
    same = all([new is old for new, old in zip(stmts, block.seq, strict=True)])
    return block if same else seq(stmts)


def constant_extent(loop: For) -> int | None:
    """The loop's trip count, or None if it is not a constant."""
    extent = loop.extent
    return extent.value if type(extent) is IntImm else None


def contains(node: Node, found: Callable[[Any], bool]) -> bool:
    """Whether the node or one below it answers the question with yes."""
    if found(node):
        return True
    return any([contains(below, found) for below in node.children()])


def fresh(var: Var) -> Var:
    """Another variable of the same name and type."""
    found: Var = type(var)._make(var.name, var.dtype, var.type_annotation, None)
    return found


def variables_of(node: Node) -> dict[Var, None]:
    """The variables that occur, buffers' pointers among them."""
    collector = VariableCollector()
    collector.visit(node)
    return collector.found


class VariableCollector(Visitor):
    """Collects variables in order of appearance."""

    def __init__(self) -> None:
        self.found: dict[Var, None] = {}

    def visit_var(self, var: Var) -> None:
        self.found[var] = None

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.found[load.buffer.data] = None
        self.visit_children(load)

    def visit_buffer_store(self, store: BufferStore) -> None:
        self.found[store.buffer.data] = None
        self.visit_children(store)


def schedule_error(message: str, at: Node, hint: str = "") -> ScheduleError:
    """The error that a schedule asks for what cannot be done."""
    return ScheduleError(message, at=at, hint=hint)


def comes_from_te(func: PrimFunc) -> bool:
    """Whether a te schedule was lowered to the function: it has stages' regions, but no blocks."""
    return bool(func.get_attr("from_legacy_te_schedule", False))
