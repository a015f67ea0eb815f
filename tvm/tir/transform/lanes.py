"""Lanes of vectors: masks, broadcasts, and for which lane a condition holds if it holds for any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from tvm.arith import Analyzer
from tvm.error import VectorizeError
from tvm.ir import extension
from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import PassContext
from tvm.support.dtype import ScalableLanes
from tvm.tir.buffer import Buffer
from tvm.tir.builtin import get_active_lane_mask
from tvm.tir.expr import (
    GE,
    GT,
    LE,
    LT,
    And,
    Broadcast,
    BufferLoad,
    Div,
    FloorDiv,
    FloorMod,
    IntImm,
    Mod,
    Ramp,
    Var,
    as_lanes,
)
from tvm.tir.function import PrimFunc
from tvm.tir.scalable import vscale_factor
from tvm.tir.stmt import BufferStore, For, ForKind, Stmt
from tvm.tir.transform.common import constant_extent, contains, is_const, variables_of

# the attribute of functions whose predicates are conditions of their loops
LANE_MASKS = "tir.lane_masks"


class NoVectorForm(Exception):
    """A statement cannot be vectorized as it stands."""


class Masking(Enum):
    """What becomes of a condition that differs between lanes."""

    NONE = 0  # the loop stays a loop
    CONDITION = 1  # the mask of loads and stores, whatever it is
    ACTIVE_LANES = 2  # that mask, if the condition is an upper bound of the index


@dataclass(frozen=True)
class Mask:
    """The lanes for which a condition holds."""

    lanes: PrimExpr
    some: bool  # whether it certainly holds for one of them


def is_vector(node: object) -> bool:
    """Whether it is an expression of more than one lane."""
    return isinstance(node, PrimExpr) and node.dtype.lanes > 1


def lanes_of(loop: For) -> int | None:
    """As many lanes as the loop has turns, if they are a constant or a multiple of vscale."""
    if vscale_factor(loop.extent) is not None:
        return as_lanes(loop.extent)
    return constant_extent(loop)


def default_masking(target: Any) -> Masking:
    """Predicates are for processors whose vectors have them anyway."""
    has_predicates = target is not None and target.features.has_sve
    return Masking.ACTIVE_LANES if has_predicates else Masking.NONE


def masking_of(func: PrimFunc, masked: bool) -> Masking:
    """What becomes of conditions in a function: as the context says, else the pass, else the target."""
    predicated = is_predicated()
    if predicated is not None:
        return Masking.ACTIVE_LANES if predicated else Masking.NONE
    return Masking.CONDITION if masked else default_masking(func.get_attr("target"))


def is_predicated() -> bool | None:
    """What the context says of predicates of loads and stores, if anything."""
    unsaid: bool | None = None
    return PassContext.current().get("tir.enable_buffer_level_predication", unsaid)


def target_of(func: PrimFunc) -> Any:
    """The target of a function, or that of the `with` block around; None if neither is known."""
    target = func.get_attr("target")
    current = extension.current_target.function
    return current() if target is None and current is not None else target


def require_scalable_vectors(loop: For, target: Any) -> None:
    """Reject a loop of as many turns as a vector has lanes, for processors without such vectors."""
    if target is None or target.features.has_scalable_vectors:
        return
    raise VectorizeError(
        f"vectorize needs vectors of scalable length for {loop.extent}, got {target}",
        at=loop,
        hint="-mattr=+sve on AArch64, -mattr=+v on RISC-V",
        classic="Failed to vectorize loop with extent "
        f"{Analyzer().simplify(loop.extent)} for target {target}",
    )


def has_vectorized_loop(body: Stmt) -> bool:
    """Whether a loop inside is marked."""
    return contains(body, lambda n: type(n) is For and n.kind is ForKind.VECTORIZED)


def problem_of_scalable_vectors(loop: For, lanes: int) -> str:
    """Why vectors of scalable length stand in the way, or an empty text."""

    def is_scalable(node: object) -> bool:
        return isinstance(node, PrimExpr) and isinstance(node.dtype.lanes, ScalableLanes)

    def stores_scalable(node: object) -> bool:
        if not isinstance(node, BufferStore):
            return False
        return isinstance(node.buffer.dtype.lanes, ScalableLanes)

    if isinstance(lanes, ScalableLanes):
        found = contains(loop.body, is_vector)
        return "Creating scalable vectors from existing vectors is not supported." if found else ""
    if contains(loop.body, stores_scalable):
        return "Vectorizing over scalable buffer elements is not supported in vectorizer."
    found = contains(loop.body, is_scalable)
    return "Vectorizing over existing scalable vectors is not supported." if found else ""


def broadcast_to(e: PrimExpr, lanes: int) -> PrimExpr:
    """The value in each of ``lanes`` lanes."""
    if e.dtype.lanes == lanes:
        return e
    if type(e) is Broadcast and lanes % e.dtype.lanes == 0:
        return Broadcast(e.value, lanes // e.value.dtype.lanes)
    if e.dtype.lanes != 1:
        raise NoVectorForm
    return Broadcast(e, lanes)


def names_of(node: PrimExpr | Stmt, names: Iterable[Var]) -> bool:
    """Whether one of the variables occurs."""
    found = variables_of(node)
    return any([name in found for name in names])


def weakest_lane(condition: Any, lanes: int) -> int | None:
    """The lane for which a condition holds if it holds for any: the first if the values that are limited
    from above grow along the lanes, the last if those limited from below do; None if that is not plain."""
    if condition.dtype.lanes == 1 or type(condition) is Broadcast:
        return 0
    if type(condition) is And:
        sides = [weakest_lane(part, lanes) for part in (condition.a, condition.b)]
        varying = [
            side
            for side, part in zip(sides, (condition.a, condition.b), strict=True)
            if type(part) is not Broadcast
        ]
        return varying[0] if len(set(varying)) == 1 else None
    small, large = condition.children() if type(condition) in COMPARISONS else (None, None)
    if type(condition) in (GT, GE):
        small, large = large, small
    if is_rising(small) and type(large) is Broadcast:
        return 0
    if is_rising(large) and type(small) is Broadcast:
        return lanes - 1
    return None


def active_lanes(condition: PrimExpr) -> PrimExpr | None:
    """``i + 0, i + 1, ... < n`` as a call of ``get_active_lane_mask``; None for other conditions."""
    if type(condition) is not LT or type(condition.a) is not Ramp:
        return None
    ramp, limit = condition.a, condition.b
    if not is_const(ramp.stride, 1) or type(limit) is not Broadcast:
        return None
    return get_active_lane_mask(condition.dtype, ramp.base, limit.value)


COMPARISONS = (LT, LE, GT, GE)


def is_rising(e: Any) -> bool:
    """Whether each lane is above the one before."""
    return type(e) is Ramp and type(e.stride) is IntImm and e.stride.value > 0


def may_trap(e: Any) -> bool:
    """Whether an operation can fail for some operands."""
    divides = type(e) in (Div, Mod, FloorDiv, FloorMod) and not e.dtype.is_float
    return divides and not (type(e.b) is IntImm and e.b.value != 0)


def reads(e: PrimExpr, buffer: Buffer) -> bool:
    """Whether the value depends on the memory of a buffer."""
    return contains(e, lambda node: type(node) is BufferLoad and node.buffer.data is buffer.data)
