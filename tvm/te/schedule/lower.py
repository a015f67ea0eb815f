"""From a schedule to a function, in three steps: ranges, loops, buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm.support.scope import deep
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc

from ..tensor import Tensor
from .infer_bound import infer_ranges
from .layout import layouts_of
from .schedule_ops import schedule_ops
from .to_prim_func import to_prim_func

if TYPE_CHECKING:
    from .schedule import Schedule


@deep
def lower_schedule(
    schedule: Schedule,
    args: Sequence[Tensor | Buffer | Var],
    name: str = "main",
    binds: Mapping[Tensor, Buffer] | None = None,
    is_initialized: bool = True,
) -> PrimFunc:
    """The function that runs a schedule.

    Parameters
    ----------
    schedule : Schedule
        Need not be in normal form.
    args : list of Tensor, Buffer or Var
        The parameters.
    name : str
        The function's global symbol.
    binds : dict of Tensor to Buffer, optional
        Buffers that tensors lie in; others are compact.
    is_initialized : bool
        False leaves the initial values of reductions out, for analyses: the function is not to be run.
    """
    normal = schedule.normalize()
    # tensors whose operation was replaced by a primitive stand for what replaced it
    current = [normal.current(arg) if isinstance(arg, Tensor) else arg for arg in args]
    buffers: Any = {normal.current(t): b for t, b in (binds or {}).items()}
    ranges = infer_ranges(normal)
    ranges.are_reductions_initialized = is_initialized
    body = schedule_ops(normal, ranges)
    return to_prim_func(current, body, buffers, name, layouts_of(normal.stages))
