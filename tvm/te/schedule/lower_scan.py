"""The statements of a scan: the first steps, then a loop over the further ones.

init: S[0, i] = X[0, i]
for t:                          all states lie in the scan's own result
    update: S[t + 1, i] = S[t, i] + X[t + 1, i]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op as tir_op
from tvm.tir.expr import IterVar, ProducerLoad, Range, const
from tvm.tir.stmt import NO_OP, AttrStmt, ProducerStore, Stmt

from ..tensor import ScanOp, Tensor
from .loop_nest import guard, make_loop_nest
from .lower_compute import Nester, find_checks
from .prefetch import PREFETCH_SCOPE
from .relations import Ranges
from .stage import Stage

# computes a stage, then runs what uses it
Pipeline = Callable[[Stage, Stmt, Collection[IterVar]], Stmt]


def provide_scan(
    stage: Stage,
    ranges: Ranges,
    threads: Collection[IterVar],
    nester: Nester,
    pipeline: Pipeline,
    inits: Sequence[Stage],
    updates: Sequence[Stage],
) -> Stmt:
    """The loop of a scan with its stages; threads are opened around the first steps too."""
    op = stage.op
    assert isinstance(op, ScanOp)
    nest = make_loop_nest(stage, ranges, threads)
    inner = max(
        [i + 1 for i, level in enumerate(nest.levels) if level.thread is not None], default=0
    )
    around = [
        *threads,
        *[level.thread for level in nest.levels[:inner] if level.thread is not None],
    ]
    body: Stmt = NO_OP
    for one in reversed(updates):
        body = pipeline(one, body, around)
    checks = find_checks(stage, ranges, nest.values, op.spatial_axis)
    body = guard([check for _, check in checks], body)
    body = nester.nest(nest.levels[inner:], body, around)
    for one in reversed(inits):
        body = pipeline(one, body, around)
    return nester.nest(nest.levels[:inner], body, threads)


def scan_bounds(op: ScanOp, index: int, ranges: Mapping[IterVar, Range]) -> tuple[Range, ...]:
    """The part of a scan's output that is kept: all steps up to the last one."""
    steps = ranges[op.scan_axis]
    end = tir_op.add(steps.min, steps.extent)
    time = Range.from_min_extent(const(0, end.dtype), end)
    return (time, *[ranges[axis] for axis in op.spatial_axes_of(index)])


def bind_states(body: Stmt, scans: Sequence[ScanOp]) -> Stmt:
    """Let the parts of a scan use the memory of its outputs."""
    rewritten: Stmt = _StateBinder(states_of(scans)).visit(body)
    return rewritten


def states_of(scans: Sequence[ScanOp]) -> dict[Tensor, Tensor]:
    """The outputs that the parts of scans stand for."""
    found: dict[Tensor, Tensor] = {}
    for op in scans:
        for parts in zip(op.init, op.update, op.state_placeholder, op.outputs, strict=True):
            found.update(dict.fromkeys(parts[:3], parts[3]))
    # the init of one scan may be the result of another
    return {part: found.get(output, output) for part, output in found.items()}


class _StateBinder(Rewriter):
    def __init__(self, states: Mapping[Tensor, Tensor]) -> None:
        self.states = states

    def _of(self, tensor: Any) -> Any:
        return self.states.get(tensor, tensor)

    def visit_producer_load(self, load: ProducerLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        target = self._of(load.producer)
        return load if target is load.producer else ProducerLoad(target, load.indices)

    def visit_producer_store(self, store: ProducerStore) -> Stmt:
        store = self.rewrite_children(store)
        target = self._of(store.producer)
        return store if target is store.producer else store.replace(producer=target)

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        attr = self.rewrite_children(attr)
        if attr.attr_key == PREFETCH_SCOPE:
            target = self._of(attr.node)
            return attr if target is attr.node else attr.replace(node=target)
        if attr.attr_key != "buffer_bind_scope":
            return attr
        buffer, tensor = attr.node
        return attr.replace(node=[buffer, self._of(tensor)])
