"""The graph of operations: who reads what, in which order, inside which loops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tvm.error import ScheduleError
from tvm.tir.expr import IterVar

from ..tensor import Operation, Tensor
from .stage_data import AttachType
from .stage_state import index_of

if TYPE_CHECKING:
    from .schedule import Schedule
    from .stage import Stage


def create_read_graph(roots: Iterable[Operation]) -> dict[Operation, tuple[Tensor, ...]]:
    """The tensors that each operation reads, of the roots and of all they depend on."""
    graph: dict[Operation, tuple[Tensor, ...]] = {}
    pending = list(roots)
    while pending:
        op = pending.pop()
        if op not in graph:
            graph[op] = op.input_tensors
            pending.extend([tensor.op for tensor in op.input_tensors])
    return graph


def post_dfs_order(
    roots: Iterable[Operation], graph: Mapping[Operation, Sequence[Tensor]]
) -> list[Operation]:
    """The operations, each after those that it reads."""
    order: dict[Operation, None] = {}
    for root in roots:
        stack: list[tuple[Operation, int]] = [(root, 0)]
        while stack:
            op, position = stack.pop()
            if op in order:
                continue
            inputs = graph[op]
            if position < len(inputs):
                stack.append((op, position + 1))
                stack.append((inputs[position].op, 0))
            else:
                order[op] = None
    return list(order)


def sub_graph(
    outputs: Iterable[Tensor], inputs: Iterable[Tensor], include_inputs: bool = False
) -> list[Operation]:
    """The operations between tensors: those that ``outputs`` need and that need ``inputs``."""
    boundary = dict.fromkeys([tensor.op for tensor in inputs])
    roots = list(dict.fromkeys([tensor.op for tensor in outputs]))
    graph = create_read_graph(roots)
    found: dict[Operation, None] = {}
    for op in post_dfs_order(roots, graph):
        if op in boundary or any(t.op in found or t.op in boundary for t in graph[op]):
            found[op] = None
    return [op for op in found if include_inputs or op not in boundary]


def create_feed_graph(
    graph: Mapping[Operation, Sequence[Tensor]],
) -> dict[Tensor, list[Operation]]:
    """The operations that read each tensor."""
    feeds: dict[Tensor, list[Operation]] = {}
    for op, inputs in graph.items():
        for tensor in inputs:
            feeds.setdefault(tensor, []).append(op)
    return feeds


def create_attach_path(schedule: Schedule) -> dict[Operation, list[IterVar]]:
    """The loops of other stages around each operation, innermost first."""
    return {stage.op: attach_path(stage) for stage in schedule.stages}


def attach_path(stage: Stage) -> list[IterVar]:
    """The loops of other stages around a stage, innermost first."""
    path: list[IterVar] = []
    inner, seen = stage, {id(stage)}
    while (spec := inner.attach_spec()).attach_type in (AttachType.Scope, AttachType.ScanUpdate):
        outer = spec.attach_stage
        position = len(outer.leaf_iter_vars) - 1
        if spec.attach_type is AttachType.Scope:
            position = index_of(outer.leaf_iter_vars, spec.attach_ivar)  # type: ignore[arg-type]
        if position < 0:
            name = "?" if spec.attach_ivar is None else spec.attach_ivar.var.name
            raise ScheduleError(
                f"compute_at requires a loop of stage {outer.op.name}, got {name}, which is none "
                "any more",
                hint="call compute_at after the consumer's loops have their final form",
            ).add_context(f"stage {inner.op.name}")
        if id(outer) in seen:
            raise ScheduleError(
                f"compute_at requires stages without a cycle, got {inner.op.name} inside "
                f"{outer.op.name}, which is inside {inner.op.name}"
            ).add_context(f"stage {inner.op.name}")
        seen.add(id(outer))
        path.extend(reversed(outer.leaf_iter_vars[: position + 1]))
        inner = outer
    return path
