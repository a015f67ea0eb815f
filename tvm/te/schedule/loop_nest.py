"""The loops of a stage, from the outermost to the innermost, with what belongs around each body."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.tir import op as tir_op
from tvm.tir.constants import is_one, is_zero
from tvm.tir.expr import LT, Call, IntImm, IterVar, IterVarType, ProducerLoad, Range, Var, const
from tvm.tir.stmt import AttrStmt, For, ForKind, IfThenElse, Stmt
from tvm.tir.stmt_functor import Substituter, variables_of

from ..tensor import ComputeOp, Tensor
from .intervals import from_range, in_dtype, interval_of, simple
from .message_passing import descend_from, pass_up_index
from .prefetch import prefetch_ahead, prefetch_shared
from .relations import Ranges, Values
from .stage import Stage
from .stage_data import StorageRank, storage_rank, thread_rank

# puts a statement around another one
Wrapper = Callable[[Stmt], Stmt]

_FOR_KINDS = {
    IterVarType.DataPar: ForKind.SERIAL,
    IterVarType.CommReduce: ForKind.SERIAL,
    IterVarType.Ordered: ForKind.SERIAL,
    IterVarType.Unrolled: ForKind.UNROLLED,
    IterVarType.Vectorized: ForKind.VECTORIZED,
    IterVarType.Parallelized: ForKind.PARALLEL,
    # for its value only: the intrinsic takes the loop's place
    IterVarType.Tensorized: ForKind.SERIAL,
}


@dataclass
class Loop:
    """What a loop runs over."""

    var: Var
    extent: PrimExpr
    kind: ForKind

    def around(self, body: Stmt) -> Stmt:
        """The loop."""
        return For(self.var, const(0, self.var.dtype), self.extent, self.kind, body)


@dataclass
class Level:
    """One loop: its axis, the statements that open it, outermost first, and guards of its body.

    ``stage_guards`` stand around the stages that are computed inside the loop, too.
    """

    iv: IterVar
    wrappers: list[Wrapper] = field(default_factory=list)
    thread: IterVar | None = None
    loop: Loop | None = None
    guards: list[PrimExpr] = field(default_factory=list)
    stage_guards: list[PrimExpr] = field(default_factory=list)


@dataclass
class LoopNest:
    """Loops, and the values of the stage's axes inside them."""

    levels: list[Level]
    values: Values


def wrap(levels: list[Level], body: Stmt) -> Stmt:
    """The body inside the loops."""
    for level in reversed(levels):
        body = guard(level.guards, body)
        for wrapper in reversed(level.wrappers):
            body = wrapper(body)
    return body


def guard(conditions: list[PrimExpr], body: Stmt) -> Stmt:
    """The body where all conditions hold."""
    for condition in reversed(conditions):
        body = IfThenElse(condition, body, None)
    return body


def guard_depth(nest: LoopNest, condition: PrimExpr, must_stay: Callable[[IterVar], bool]) -> int:
    """Inside how many of the loops a condition has to stand: outside those that do not change it.

    It never moves out of loops over threads, nor of those in which other stages are computed
    (``must_stay``): threads must not part where they wait for each other.
    """
    used = variables_of(condition)
    depth = len(nest.levels)
    while depth > 0:
        level = nest.levels[depth - 1]
        changes = any(var in used for var in variables_of(nest.values[level.iv]))
        if changes or level.thread is not None or must_stay(level.iv):
            break
        depth -= 1
    return depth


def holds_somewhere(
    condition: PrimExpr, nest: LoopNest, depth: int, analyzer: Analyzer
) -> PrimExpr | None:
    """Whether a comparison holds in any iteration of the loops further inside than ``depth``.

    None if that is always so, or if the loops around do not tell.
    """
    if not isinstance(condition, LT):
        return None
    inside = {
        level.loop.var: from_range(Range.from_min_extent(0, level.loop.extent))
        for level in nest.levels[depth:]
        if level.loop is not None
    }
    low = interval_of(condition.a, inside, analyzer).low
    if low is None or any(var in inside for var in variables_of(condition.b)):
        return None
    result = tir_op.less(low, condition.b)
    return None if analyzer.can_prove(result) else result


class _Reads(Visitor):
    def __init__(self) -> None:
        self.found = False

    def visit_producer_load(self, load: ProducerLoad) -> None:
        self.found = True

    def visit_call(self, call: Call) -> None:
        self.found = True


def is_computed(condition: PrimExpr) -> bool:
    """Whether a condition depends on elements of tensors or on calls, not on loops alone."""
    finder = _Reads()
    finder.visit(condition)
    return finder.found


def make_loop_nest(
    stage: Stage,
    ranges: Ranges,
    threads: Collection[IterVar],
    loops: Sequence[IterVar] | None = None,
    known: Values | None = None,
) -> LoopNest:
    """The loops of a stage.

    Parameters
    ----------
    threads : collection of IterVar
        Thread axes that are open already; they are not opened again.
    loops : sequence of IterVar, optional
        By default all of the stage's.
    known : dict of IterVar to PrimExpr, optional
        The values of loops around, for a nest beside the main one; its loops get variables of their
        own.
    """
    fresh = known is not None
    values: Values = dict(known or {})
    opened = dict.fromkeys(threads)
    levels = []
    for iv in stage.leaf_iter_vars if loops is None else loops:
        level = _make_level(stage, iv, ranges, opened, values, fresh)
        if level.thread is not None:
            opened[level.thread] = None
        levels.append(level)
    pass_up_index(stage, ranges, values)
    _close_extents(stage, ranges, levels, values)
    return LoopNest(levels, values)


def _close_extents(stage: Stage, ranges: Ranges, levels: Sequence[Level], values: Values) -> None:
    """Let extents that depend on an element's position say so by the loops around.

    Those are of reductions whose rows are of different lengths.
    """
    opened: dict[Var, None] = {}
    for level in levels:
        extent = ranges[level.iv].extent
        if level.loop is not None and depends_on_element(stage, extent):
            level.loop.extent = at_element(stage, extent, values)
            own = [level.loop.var, *[v.loop.var for v in levels if v.loop is not None]]
            values.update({iv: at_element(stage, value, values) for iv, value in values.items()})
            _require_outside(stage, level, [v for v in own if v not in opened])
        if level.loop is not None:
            opened[level.loop.var] = None


def _require_outside(stage: Stage, level: Level, inside: Sequence[Var]) -> None:
    assert level.loop is not None
    used = variables_of(level.loop.extent)
    for var in inside:
        if var in used:
            raise ScheduleError(
                f"a loop over rows of different lengths requires to be inside those that choose "
                f"the row, got {level.iv.var.name} of extent {level.loop.extent} around {var.name}",
                hint="reorder the loops, and leave the one over the row unfused",
            ).add_context(f"stage {stage.op.name}")


def depends_on_element(stage: Stage, extent: PrimExpr) -> bool:
    """Whether a loop's extent is another one for each element."""
    if type(extent) is IntImm:
        return False
    axes = [iv.var for iv in stage.op.root_iter_vars()]
    return any(var in axes for var in variables_of(extent))


def require_equal_rows(primitive: str, stage: Stage, op: ComputeOp) -> None:
    """Reject a reduction whose extent is another one for each element."""
    for iv in op.reduce_axis:
        if iv.dom is not None and depends_on_element(stage, iv.dom.extent):
            raise ScheduleError(
                f"{primitive} requires a reduction of one extent for all elements, "
                f"got {iv.var.name} of {iv.dom.extent}"
            ).add_context(f"stage {op.name}")


def at_element(stage: Stage, expr: PrimExpr, values: Values) -> PrimExpr:
    """An expression over the axes of a stage's operation, at the element that is computed."""
    if not depends_on_element(stage, expr):
        return expr
    roots = {iv.var: values[iv] for iv in stage.op.root_iter_vars() if iv in values}
    rewritten: PrimExpr = Substituter(roots).visit(expr)
    return rewritten


def _make_level(
    stage: Stage,
    iv: IterVar,
    ranges: Ranges,
    opened: dict[IterVar, None],
    values: Values,
    fresh: bool,
) -> Level:
    thread = stage.thread_of(iv)
    if thread.thread_tag:
        return _make_thread(stage, iv, thread, ranges, opened, values)
    domain, attr = ranges[iv], stage.attr_of(iv)
    dtype = iv.var.dtype
    level = Level(iv)
    for key, value in zip(attr.pragma_keys, attr.pragma_values, strict=True):
        level.wrappers.append(_pragma(iv, key.value, value))
    if is_one(domain.extent) and not ranges.keeps_trivial_loops:
        values[iv] = in_dtype(domain.min, dtype)
        return level
    kind = _FOR_KINDS.get(attr.iter_type)
    if kind is None:
        raise ScheduleError(
            f"a loop requires an axis that iterates, got {iv.var.name} of {attr.iter_type.name}"
        ).add_context(f"stage {stage.op.name}")
    var = Var(f"{iv.var.name}.init", dtype) if fresh else iv.var
    level.loop = Loop(var, domain.extent, kind)
    level.wrappers.append(level.loop.around)
    if not fresh:
        level.wrappers += [
            _prefetch(tensor, var, in_dtype(offset, dtype), over)
            for tensor, offset, over in zip(
                attr.prefetch_data, attr.prefetch_offset, attr.prefetch_over, strict=True
            )
        ]
    values[iv] = var if is_zero(domain.min) else tir_op.add(domain.min, var)
    return level


def _pragma(iv: IterVar, key: str, value: PrimExpr) -> Wrapper:
    return lambda body: AttrStmt(iv, f"pragma_{key}", value, body)


def _prefetch(tensor: Tensor, var: Var, offset: PrimExpr, over: IterVar | None) -> Wrapper:
    if over is None:
        return lambda body: prefetch_ahead(tensor, var, offset, body)
    return lambda body: prefetch_shared(tensor, var, offset, over.var, body)


def _make_thread(
    stage: Stage,
    iv: IterVar,
    thread: IterVar,
    ranges: Ranges,
    opened: dict[IterVar, None],
    values: Values,
) -> Level:
    domain = ranges[iv]
    if not is_zero(domain.min):
        raise ScheduleError(
            f"bind requires a loop from 0, got {iv.var.name} from {domain.min}",
            hint="split the axis and bind one of the parts",
        ).add_context(f"stage {stage.op.name}")
    is_virtual = thread.thread_tag in ("vthread", "cthread") or thread.thread_tag.startswith(
        "vthread"
    )
    extent = simple(ranges[thread].extent, ranges.analyzer)
    if is_virtual and not isinstance(extent, IntImm):
        raise ScheduleError(
            f"{thread.thread_tag} requires a constant extent, got {extent}"
        ).add_context(f"stage {stage.op.name}, axis {iv.var.name}")
    if depends_on_element(stage, extent):
        raise ScheduleError(
            f"bind requires a loop of one extent for all elements, got {iv.var.name} of {extent}",
            hint="split the loop by a constant factor and bind the inner part",
        ).add_context(f"stage {stage.op.name}")
    level = Level(iv, thread=thread)
    if thread not in opened:
        key = "virtual_thread" if is_virtual else "thread_extent"
        count = in_dtype(extent, thread.var.dtype)
        # the domain is what the text of a launch says
        launched = thread.replace(dom=Range.from_min_extent(0, count))
        level.wrappers.append(lambda body: AttrStmt(launched, key, count, body))
    values[iv] = _thread_value(stage, iv, thread, ranges, is_virtual)
    return level


def _thread_value(
    stage: Stage, iv: IterVar, thread: IterVar, ranges: Ranges, is_virtual: bool
) -> PrimExpr:
    """The thread's number; 0 where each thread has its own copy of the result."""
    dtype = iv.var.dtype
    if is_one(ranges[iv].extent):
        return const(0, dtype)
    own = (
        bool(stage.scope)
        and not is_virtual
        and stage.scope != "warp"
        and storage_rank(stage.scope) > thread_rank(thread.thread_tag)
    )
    if own and storage_rank(stage.scope) != StorageRank.WARP:
        _require_own_elements(stage, iv, thread, ranges)
        return const(0, dtype)
    return in_dtype(thread.var, dtype)


def _require_own_elements(stage: Stage, iv: IterVar, thread: IterVar, ranges: Ranges) -> None:
    """A thread with memory of its own has to compute all that is needed there."""
    for root in stage.op.root_iter_vars():
        extent = ranges[root].extent
        if not is_one(extent) and (iv is root or iv in descend_from(stage, [root])):
            raise ScheduleError(
                f"bind of {iv.var.name} requires memory that {thread.thread_tag} shares, as "
                f"{root.var.name} runs over {extent} elements, got scope {stage.scope}",
                hint=f"compute_at {stage.op.name} inside the loop bound to {thread.thread_tag}, "
                "or set_scope a shared memory",
            ).add_context(f"stage {stage.op.name}")
