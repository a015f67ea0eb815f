"""Where a stage is computed and in which loops, as people read it.

T_relu:  loops parallel ax0_outer, ax1, vectorized ax0_inner
T_add:   inlined into its readers
"""

from __future__ import annotations

from tvm.tir.expr import IterVar, IterVarType

from .stage import Stage
from .stage_data import NO_ATTR, AttachType

_KINDS = {
    IterVarType.Parallelized: "parallel ",
    IterVarType.Vectorized: "vectorized ",
    IterVarType.Unrolled: "unrolled ",
    IterVarType.Tensorized: "tensorized ",
}


def place_text(stage: Stage) -> str:
    """Where a stage is computed; empty for one that has loops of its own."""
    if is_inlined(stage):
        return "inlined into its readers"
    if stage.attach_type is not AttachType.Scope or stage.attach_stage is None:
        return ""
    at = stage.attach_ivar.var.name if stage.attach_ivar is not None else "?"
    return f"computed at {stage.attach_stage.op.name}, axis {at}"


def is_inlined(stage: Stage) -> bool:
    """Whether readers compute what they need of a stage themselves."""
    return stage.attach_type in (AttachType.Inline, AttachType.InlinedAlready)


def loop_texts(stage: Stage) -> list[str]:
    """The loops from outside in, and what primitives said about them."""
    return [_loop_text(stage, axis) for axis in stage.leaf_iter_vars]


def _loop_text(stage: Stage, axis: IterVar) -> str:
    attr, name = stage.iter_var_attrs.get(axis, NO_ATTR), axis.var.name
    if attr.bind_thread is not None:
        return f"{name} bound to {attr.bind_thread.thread_tag}"
    return f"{_KINDS.get(attr.iter_type, '')}{name}"
