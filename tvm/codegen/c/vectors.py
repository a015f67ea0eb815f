"""Vectors as loops over their lanes.

    A[ramp(0, 1, 8)] = B[ramp(0, 1, 8)] + broadcast(x, 8)

    for (int32_t lane = 0; lane < 8; ++lane) {
      A[lane] = B[lane] + x;
    }

Most expressions are written for the lane at hand. One that mixes lanes is computed as a whole first, into an
array, by a loop in front of the loop that uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tvm.codegen.undefined import undefined_variable
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.op import Op
from tvm.support.dtype import ScalableLanes
from tvm.tir.expr import Broadcast, Call, CallEffectKind, IntImm, Let, Ramp, Shuffle, Var
from tvm.tir.intrinsics import INTRINSICS

from .arithmetic import ArithmeticWriter, bare
from .types import TYPES

IF_THEN_ELSE = INTRINSICS["if_then_else"]
LANE = "lane"


class VectorWriter(ArithmeticWriter):
    """Adds vectors and variables."""

    values: dict[Var, str]
    used: set[Var]
    read: set[Var]  # variables whose value or memory is read
    lane: str | None  # which lane is being written
    before: list[str]  # the block in front of the loop over lanes
    of_lane: set[Var]  # vectors of which a name holds the lane at hand

    def visit_var(self, var: Var) -> str:
        found = self.values.get(var)
        if found is None:
            raise undefined_variable(var)
        self.used.add(var)
        self.read.add(var)
        is_scalar = var.dtype.lanes == 1 or var in self.of_lane
        return found if is_scalar else f"{found}[{self.lane}]"

    # ---- lanes

    @contextmanager
    def lanes(self, count: int) -> Iterator[str]:
        """A loop over lanes, for whose body the statements inside the block are."""
        _require_fixed(count)
        before = self.code.lines
        with self.code.block(f"for (int32_t {LANE} = 0; {LANE} < {count}; ++{LANE})"):
            self.lane, self.before = LANE, before
            yield LANE
            self.lane = None

    @contextmanager
    def in_front(self) -> Iterator[None]:
        """Statements in front of the loop over lanes, if there is one around."""
        lane, before = self.lane, self.before
        if lane is None:
            yield
            return
        self.lane = None
        with self.code.inside(before):
            yield
        self.lane, self.before = lane, before

    @contextmanager
    def at_lane(self, lane: str) -> Iterator[None]:
        """Expressions inside the block are written for another lane."""
        outer, self.lane = self.lane, lane
        yield
        self.lane = outer

    def array_of(self, node: PrimExpr) -> str:
        """All lanes of a vector in an array; a scalar in a variable."""
        with self.in_front():
            type_ = TYPES[node.dtype.element]
            if node.dtype.lanes == 1:
                return self.code.define(type_.text, "value", bare(self.visit(node)))
            _require_fixed(node.dtype.lanes)
            name = self.code.name("vector")
            self.code.do(f"{type_.text} {name}[{node.dtype.lanes}]")
            self._fill(name, node)
        return name

    def _fill(self, name: str, node: PrimExpr) -> None:
        if type(node) is Call and node.op is IF_THEN_ELSE and node.args[0].dtype.lanes == 1:
            condition, yes, no = node.args
            with self.code.block(f"if ({bare(self.visit(condition))})"):
                self._fill(name, yes)
            with self.code.block("else"):
                self._fill(name, no)
            return
        with self.lanes(node.dtype.lanes) as lane:
            self.code.do(f"{name}[{lane}] = {bare(self.visit(node))}")

    def lane_of(self, node: PrimExpr) -> str:
        """The lane at hand of a vector that is computed as a whole."""
        return f"{self.array_of(node)}[{self.lane}]"

    # ---- expressions

    def visit_broadcast(self, node: Broadcast) -> str:
        value = node.value
        if value.dtype.lanes > 1:
            with self.at_lane(_modulo(self.lane, value.dtype.lanes)):
                return str(self.visit(value))
        return str(self.visit(value)) if is_lane_wise(value) else self.array_of(value)

    def visit_ramp(self, node: Ramp) -> str:
        inner = node.base.dtype.lanes
        step = str(self.lane) if inner == 1 else f"({self.lane} / {inner})"
        with self.at_lane(str(self.lane) if inner == 1 else _modulo(self.lane, inner)):
            base, stride = self.visit(node.base), self.visit(node.stride)
        if node.dtype.bits == 64:
            step = f"(int64_t){step}"
        if not (isinstance(node.stride, IntImm) and node.stride.value == 1):
            step = f"{step} * {stride}"
        type_ = TYPES[node.dtype.element].text
        return f"({base} + {step})" if node.dtype.bits >= 32 else f"(({type_})({base} + {step}))"

    def visit_shuffle(self, node: Shuffle) -> str:
        sources = [(v, lane) for v in node.vectors for lane in range(v.dtype.lanes)]
        chosen = [sources[_constant(index, node)] for index in node.indices]
        arrays = {key: self.array_of(v) for key, v in {id(v): v for v, _ in chosen}.items()}
        items = [
            arrays[id(v)] if v.dtype.lanes == 1 else f"{arrays[id(v)]}[{lane}]"
            for v, lane in chosen
        ]
        if node.dtype.lanes == 1:
            return items[0]
        with self.in_front():
            name = self.code.name("shuffled")
            self.code.do(f"{TYPES[node.dtype.element].text} {name}[{len(items)}]")
            for lane, item in enumerate(items):
                self.code.do(f"{name}[{lane}] = {item}")
        return f"{name}[{self.lane}]"

    def visit_let(self, node: Let) -> str:
        in_lane = self.lane is not None and is_lane_wise(node)
        is_scalar = self.lane is None and node.var.dtype.lanes == 1
        if node.var.dtype.is_handle or not (in_lane or is_scalar):
            with self.in_front():
                self.bind(node.var, node.value)
            return str(self.visit(node.body))
        name = self.values[node.var] = self.named(self.visit(node.value), node.var.dtype)
        self.used.discard(node.var)
        if in_lane:
            self.of_lane.add(node.var)
        body = str(self.visit(node.body))
        if node.var not in self.used:
            self.code.do(f"(void){name}")
        return body

    def bind(self, var: Var, value: PrimExpr) -> None:
        """Define a variable."""
        raise NotImplementedError


def is_lane_wise(node: PrimExpr) -> bool:
    """Whether an expression may be evaluated once for each lane, where that lane is used."""
    pending: list[Any] = [node]
    while pending:
        current = pending.pop()
        kind = type(current)
        if kind is Shuffle or (kind is Call and not _is_lane_wise_call(current)):
            return False
        pending.extend(current.children())
    return True


def _is_lane_wise_call(call: Call) -> bool:
    if not isinstance(call.op, Op):
        return False
    name = call.op.name
    if name == "tir.reinterpret":
        return call.dtype.lanes == call.args[0].dtype.lanes
    pure = call.op.effect in (CallEffectKind.Pure, CallEffectKind.ExprAnnotation)
    return pure and (bool(call.op.vectorizable) or name in _LANE_WISE)


_LANE_WISE = ("tir.if_then_else", "tir.get_active_lane_mask", "tir.isnullptr", "tir.address_of")


def _modulo(lane: str | None, count: int) -> str:
    return f"({lane} % {count})"


def _constant(index: PrimExpr, node: Shuffle) -> int:
    if type(index) is not IntImm:
        raise LoweringError(f"shuffle needs constant indices, got {index}", at=node)
    return index.value


def _require_fixed(lanes: int) -> None:
    if isinstance(lanes, ScalableLanes):
        raise LoweringError(
            f"target c has no scalable vectors, got one of vscale() * {lanes.factor} lanes",
            hint="use target llvm, or vectors of constant length",
        )
