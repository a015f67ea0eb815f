"""From a schedule to a function, in three steps: ranges, loops, buffers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import AttrStmt, ProducerStore, Stmt

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
        Buffers that tensors lie in; others get one by :func:`argument_buffer`.
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
    layouts = layouts_of(normal.stages)
    open_args = [
        arg
        for arg in current
        if isinstance(arg, Tensor) and arg not in buffers and arg not in layouts and is_open(arg)
    ]
    if open_args and not uses_buffers(body):
        buffers |= {arg: argument_buffer(arg) for arg in open_args}
    return to_prim_func(current, body, buffers, name, layouts)


def is_open(tensor: Tensor) -> bool:
    """Whether only a call tells an extent."""
    return any([isinstance(dim, Var) for dim in tensor.shape])


def argument_buffer(tensor: Tensor, compact: bool = False) -> Buffer:
    """The buffer of a tensor that is a parameter.

    If only the call tells an extent, it tells the strides too: axes that turn out to have one
    element broadcast.

    Parameters
    ----------
    tensor : Tensor
    compact : bool
        Whether the elements must lie in order.
    """
    kind = "auto_broadcast" if is_open(tensor) and not compact else ""
    return decl_buffer(tensor.shape, tensor.dtype, tensor.name, buffer_type=kind)


def uses_buffers(body: Stmt) -> bool:
    """Whether an extern operation or an intrinsic names buffers, whose layout it may rely on."""
    finder = _BindFinder()
    finder.visit(body)
    return finder.found


class _BindFinder(Visitor):
    def __init__(self) -> None:
        self.found = False

    def visit_attr_stmt(self, attr: AttrStmt) -> None:
        self.found = self.found or attr.attr_key == "buffer_bind_scope"
        self.visit(attr.body)

    def visit_producer_store(self, store: ProducerStore) -> None:
        """Tensors in it are not buffers."""
