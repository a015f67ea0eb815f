"""Lanes that only the machine knows, as expressions: ``vscale() * 4`` <-> ``float32xvscalex4``."""

from __future__ import annotations

from typing import Any

from tvm.error import RuntimeTypeError
from tvm.support.dtype import ScalableLanes

from .builtin import vscale
from .constants import IntImm, register_scalable_lanes
from .expr import Call, Mul
from .intrinsics import INTRINSICS

VSCALE = INTRINSICS["vscale"]


def is_vscale(e: Any) -> bool:
    """Whether an expression is ``vscale()``."""
    return type(e) is Call and e.op is VSCALE


def vscale_factor(e: Any) -> int | None:
    """The c of ``vscale() * c``; None for other expressions, a constant among them."""
    if is_vscale(e):
        return 1
    if type(e) is not Mul:
        return None
    for part, other in ((e.a, e.b), (e.b, e.a)):
        if type(other) is IntImm and (factor := vscale_factor(part)) is not None:
            return factor * other.value
    return None


def _as_lanes(e: Any) -> ScalableLanes:
    factor = vscale_factor(e)
    if factor is None:
        raise RuntimeTypeError(
            f"a vector requires a constant number of lanes, or vscale() times a constant, got {e}"
        )
    return ScalableLanes(factor)


def _as_expression(lanes: ScalableLanes) -> Any:
    return vscale() * lanes.factor


register_scalable_lanes(_as_lanes, _as_expression)
