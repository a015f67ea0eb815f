"""A schedule as text: what each stage computes, where, and in which loops.

T_relu[ax0, ax1] = T.max(T_add[ax0, ax1], T.float32(0.0))  # float32[8, 64]
  loops: parallel ax0_outer, ax1, vectorized ax0_inner
T_add[ax0, ax1] = conv[ax0, ax1] + p2[ax0]  # float32[8, 64]
  inlined into its readers
"""

from __future__ import annotations

from tvm import te
from tvm.te.schedule.stage import Stage
from tvm.te.schedule.stage_text import is_inlined, loop_texts, place_text
from tvm.te.tensor import ComputeOp, Operation, PlaceholderOp
from tvm.tir.expr import IterVar


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
    lines = [place_text(stage)]
    if not is_inlined(stage):
        lines.append(f"kept in {stage.scope} memory" if stage.scope else "")
        loops = ", ".join(loop_texts(stage))
        lines.append(f"loops: {loops}" if loops else "")
    return [f"  {line}" for line in lines if line]
