"""A schedule as text: what each stage computes, where, and in which loops.

T_relu[ax0, ax1] = T.max(T_add[ax0, ax1], T.float32(0.0))
  in parallel ax0_outer, ax1, vectorized ax0_inner
T_add[ax0, ax1] = conv[ax0, ax1] + p2[ax0]
  inlined
"""

from __future__ import annotations

from tvm import te
from tvm.te.schedule.stage import Stage
from tvm.te.schedule.stage_data import AttachType
from tvm.te.tensor import ComputeOp, Operation, PlaceholderOp
from tvm.tir.expr import IterVar, IterVarType

_KINDS = {
    IterVarType.Parallelized: "parallel ",
    IterVarType.Vectorized: "vectorized ",
    IterVarType.Unrolled: "unrolled ",
    IterVarType.Tensorized: "tensorized ",
}


def te_text(schedule: te.Schedule) -> tuple[str, dict[str, int]]:
    """The text of a schedule, and the first line of each stage by the name of its buffer."""
    lines: list[str] = []
    first: dict[str, int] = {}
    for stage in schedule.stages:
        first.setdefault(buffer_name(stage.op.name), len(lines) + 1)
        lines += [_definition(stage.op), *_placement(stage)]
    return "\n".join(lines), first


def buffer_name(name: str) -> str:
    """A stage's name as loop programs write it."""
    return name.replace(".", "_")


def _definition(op: Operation) -> str:
    if isinstance(op, PlaceholderOp):
        shape = ", ".join(map(str, op.output_shape(0)))
        return f"{op.name} = te.placeholder(({shape}), {str(op.output_dtype(0))!r})"
    if not isinstance(op, ComputeOp):
        return f"{op.name} = {type(op).__name__}"
    axes = ", ".join([_name(axis) for axis in op.axis])
    domain = ", ".join([str(axis.dom.extent) if axis.dom else "?" for axis in op.axis])
    body = ", ".join([_body(e) for e in op.body])
    return f"{op.name}[{axes}] = {body}  # {op.output_dtype(0)}[{domain}]"


def _body(value: object) -> str:
    axes = getattr(value, "axis", None)
    combiner = getattr(value, "combiner", None)
    if axes is None or combiner is None:
        return str(value)
    sources = ", ".join([str(s) for s in value.source])  # type: ignore[attr-defined]
    over = ", ".join(
        [f"{_name(axis)} < {axis.dom.extent}" if axis.dom else _name(axis) for axis in axes]
    )
    results = ", ".join([str(result) for result in combiner.result])
    return f"reduce({sources}; {over}; {results})"


def _name(axis: IterVar) -> str:
    return str(axis.var.name)


def _placement(stage: Stage) -> list[str]:
    if isinstance(stage.op, PlaceholderOp):
        return []
    if stage.attach_type in (AttachType.Inline, AttachType.InlinedAlready):
        return ["  inlined into its readers"]
    lines = []
    if stage.attach_type is AttachType.Scope and stage.attach_stage is not None:
        at = _name(stage.attach_ivar) if stage.attach_ivar is not None else "?"
        lines.append(f"  computed at {stage.attach_stage.op.name}, axis {at}")
    if stage.scope:
        lines.append(f"  kept in {stage.scope} memory")
    loops = [_loop(stage, axis) for axis in stage.leaf_iter_vars]
    return [*lines, *([f"  loops: {', '.join(loops)}"] if loops else [])]


def _loop(stage: Stage, axis: IterVar) -> str:
    attr = stage.iter_var_attrs.get(axis)
    if attr is None:
        return _name(axis)
    if attr.bind_thread is not None:
        return f"{_name(axis)} bound to {attr.bind_thread.thread_tag}"
    return f"{_KINDS.get(attr.iter_type, '')}{_name(axis)}"
