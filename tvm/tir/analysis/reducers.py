"""Which associative and commutative combination a reduction block updates its results by.

C[i] = C[i] + A[i, k]                                       a sum of A[i, k]
v0 = Select(I[i] >= ..., I[i], k); ...; I[i] = v0           the greatest value and its index
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.constants import limits
from tvm.tir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    BinaryOpExpr,
    BufferLoad,
    FloatImm,
    IntImm,
    Max,
    Min,
    Mul,
    Select,
    Var,
)
from tvm.tir.stmt import Block, BufferStore, LetStmt, SeqStmt, Stmt
from tvm.tir.stmt_functor import substitute


class NoReducerError(ValueError):
    """A block is no reduction by a known combination."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """The stores of a reduction block in order: what they start from, and what they combine.

    ``combine`` takes the values so far and those that are added to them.
    """

    buffers: tuple[Buffer, ...]
    indices: tuple[PrimExpr, ...]
    initial: tuple[PrimExpr, ...]
    added: tuple[PrimExpr, ...]
    combine: Callable[[Sequence[PrimExpr], Sequence[PrimExpr]], list[PrimExpr]]


def reduction_of(block: Block) -> Reduction:
    """The combination of a reduction block; rejected if none is known that its update is."""
    initial = _initial_stores(block)
    written = [region.buffer for region in block.writes]
    if any([store.buffer not in dict.fromkeys(written) for store in initial]):
        _reject(block, "it initialises a buffer that is not among what it writes")
    initial.sort(key=lambda store: [b is store.buffer for b in written].index(True))
    stores, lets = _updates(block)
    buffers = [store.buffer for store in initial]
    if [*dict.fromkeys(buffers)] != buffers or len(stores) != len(initial):
        _reject(block, "each buffer is required to be initialised and updated once")
    if any([not structural_equal(buffer.shape, buffers[0].shape) for buffer in buffers]):
        _reject(block, "all buffers that it writes are required to have one shape")
    order = {buffer: position for position, buffer in enumerate(buffers)}
    if len(dict.fromkeys([store.buffer for store in stores])) != len(stores):
        _reject(block, "it updates a buffer several times")
    if any([store.buffer not in order for store in stores]):
        _reject(block, "it updates a buffer that it does not initialise")
    stores.sort(key=lambda store: order[store.buffer])
    indices = stores[0].indices
    for store in (*stores, *initial):
        if not structural_equal(store.indices, indices):
            _reject(block, "all buffers are required to be accessed at the same indices")
    values = [substitute_lets(store.value, lets) for store in stores]
    mine = [BufferLoad(buffer, indices) for buffer in buffers]
    starts = [store.value for store in initial]
    found = _tuple_of_operators(values, mine, starts) or _extremum(values, mine, starts)
    if found is None:
        _reject(block, "no known associative and commutative combination is its update")
    added, combine = found
    reads = _LoadsOf(buffers)
    for value in added:
        reads.visit(value)
    if reads.found:
        _reject(block, "what it adds depends on its result so far")
    return Reduction(tuple(buffers), indices, tuple(starts), tuple(added), combine)


def substitute_lets(value: PrimExpr, lets: dict[Var, PrimExpr]) -> PrimExpr:
    """The value with variables that are bound to expressions replaced, innermost last."""
    for var, bound in reversed(list(lets.items())):
        value = substitute(value, {var: bound})
    return value


def _initial_stores(block: Block) -> list[BufferStore]:
    init = block.init
    stmts = list(init.seq) if isinstance(init, SeqStmt) else [init]
    if any([not isinstance(stmt, BufferStore) for stmt in stmts]):
        _reject(block, "its init is required to be stores alone")
    return [stmt for stmt in stmts if isinstance(stmt, BufferStore)]


def _updates(block: Block) -> tuple[list[BufferStore], dict[Var, PrimExpr]]:
    lets: dict[Var, PrimExpr] = {}
    body: Stmt = block.body
    while isinstance(body, LetStmt):
        lets[body.var] = body.value
        body = body.body
    stmts = list(body.seq) if isinstance(body, SeqStmt) else [body]
    stores = [stmt for stmt in stmts if isinstance(stmt, BufferStore)]
    if len(stores) != len(stmts):
        _reject(block, "its body is required to be stores, of values that may be bound before")
    bound = [
        store.value for store in stores if isinstance(store.value, Var) and store.value in lets
    ]
    if len(stores) > 1 and len(dict.fromkeys(bound)) != len(stores):
        _reject(
            block, "values of several buffers are required to be computed before they are stored"
        )
    return stores, lets


Found = tuple[list[PrimExpr], Callable[[Sequence[PrimExpr], Sequence[PrimExpr]], list[PrimExpr]]]
_OPERATORS: dict[type, Callable[[PrimExpr, PrimExpr], PrimExpr]] = {
    Add: op.add, Mul: op.multiply, Min: op.min, Max: op.max,
}  # fmt: skip


def _tuple_of_operators(
    values: Sequence[PrimExpr], mine: Sequence[BufferLoad], starts: Sequence[PrimExpr]
) -> Found | None:
    added: list[PrimExpr] = []
    operators: list[Callable[[PrimExpr, PrimExpr], PrimExpr]] = []
    for value, load, start in zip(values, mine, starts, strict=True):
        operator = _OPERATORS.get(type(value))
        if operator is None or not _is_identity(type(value), start):
            return None
        assert isinstance(value, BinaryOpExpr)
        a, b = value.a, value.b
        if structural_equal(a, load):
            added.append(b)
        elif structural_equal(b, load):
            added.append(a)
        else:
            return None
        operators.append(operator)

    def combine(lhs: Sequence[PrimExpr], rhs: Sequence[PrimExpr]) -> list[PrimExpr]:
        return [f(a, b) for f, a, b in zip(operators, lhs, rhs, strict=True)]

    return added, combine


def _is_identity(kind: type, value: PrimExpr) -> bool:
    """Whether a value changes nothing that it is combined with."""
    if not isinstance(value, (IntImm, FloatImm)):
        return False
    if kind is Add:
        return bool(value.value == 0)
    if kind is Mul:
        return bool(value.value == 1)
    dtype = value.dtype
    if dtype.is_float:
        infinite = value.value == (float("inf") if kind is Min else -float("inf"))
        return infinite or structural_equal(value, _extreme(kind, dtype))
    low, high = limits(dtype)
    return bool(value.value == (high if kind is Min else low))


def _extreme(kind: type, dtype: Any) -> PrimExpr:
    return op.max_value(dtype) if kind is Min else op.min_value(dtype)


def _extremum(
    values: Sequence[PrimExpr], mine: Sequence[BufferLoad], starts: Sequence[PrimExpr]
) -> Found | None:
    """The greatest or least value with its index: one condition selects both."""
    del starts
    selects = [value for value in values if isinstance(value, Select)]
    if len(values) != 2 or len(selects) != 2:
        return None
    added: list[PrimExpr] = []
    for select, load in zip(selects, mine, strict=True):
        if not structural_equal(select.true_value, load):
            return None
        added.append(select.false_value)
    places = [Var(f"added{i}", value.dtype) for i, value in enumerate(added)]
    so_far = [Var(f"so_far{i}", load.dtype) for i, load in enumerate(mine)]
    known = [*zip(mine, so_far, strict=True), *zip(added, places, strict=True)]
    conditions = [_Abstracted(known).visit(select.condition) for select in selects]
    known_orders = [
        order
        for value, index in ((1, 0), (0, 1))
        for order in _orders(so_far[value], places[value], so_far[index], places[index])
    ]
    for condition in conditions:
        if not any([structural_equal(condition, order) for order in known_orders]):
            return None

    def combine(lhs: Sequence[PrimExpr], rhs: Sequence[PrimExpr]) -> list[PrimExpr]:
        bound = dict(zip((*so_far, *places), (*lhs, *rhs), strict=True))
        return [
            Select(substitute(condition, bound), a, b)
            for condition, a, b in zip(conditions, lhs, rhs, strict=True)
        ]

    return added, combine


def _orders(best: Var, candidate: Var, index: Var, other: Var) -> list[PrimExpr]:
    """The conditions under which the value so far stays."""
    found: list[PrimExpr] = []
    for strict, loose in ((GT, GE), (LT, LE)):
        found += [loose(best, candidate), strict(best, candidate)]
        equal = op.logical_and(op.equal(best, candidate), op.less(index, other))
        found.append(op.logical_or(strict(best, candidate), equal))
    return found


class _Abstracted(Rewriter):
    """Puts variables into the place of expressions."""

    def __init__(self, known: Sequence[tuple[PrimExpr, Var]]) -> None:
        self.known = known

    def visit(self, node: Any) -> Any:
        if isinstance(node, PrimExpr):
            for expr, var in self.known:
                if type(expr) is type(node) and structural_equal(expr, node):
                    return var
        return super().visit(node)


class _LoadsOf(Visitor):
    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = dict.fromkeys(buffers)
        self.found = False

    def visit_buffer_load(self, load: BufferLoad) -> None:
        self.found = self.found or load.buffer in self.buffers
        self.visit_children(load)


def _reject(block: Block, reason: str) -> NoReturn:
    raise NoReducerError(f"{block.name_hint} reduces by no known combination: {reason}")
