"""The stores of a state's program, from its bounds: the program is not lowered for it."""

from __future__ import annotations

from tvm.support.scope import deep
from tvm.te.tensor import ComputeOp, Operation, Tensor
from tvm.tir.expr import ProducerLoad, Reduce

from ..bounds import Bounds, loop_id
from ..graph import ComputeGraph
from ..loops import Annotation, ComputeAt, LoopKind, constant_extent
from .operations import OperationCounter, count_index
from .program import Access, AccessType, Program, Store


def program_of(bounds: Bounds) -> Program:
    """The stores of a state, in their order.

    Parameters
    ----------
    bounds : Bounds
        What is known of the state.
    """
    program = Program(bounds.count, {})
    for stage_id, stage in enumerate(bounds.state.stages):
        for position, loop in enumerate(stage.iters):
            if loop.annotation != Annotation.NONE:
                program.kinds[loop_id(stage_id, position)] = loop.annotation
    for stage_id, stage in enumerate(bounds.state.stages):
        if isinstance(stage.op, ComputeOp) and stage.compute_at != ComputeAt.INLINED:
            program.stores.extend(_stores(bounds, stage_id))
    return program


def _stores(bounds: Bounds, stage_id: int) -> list[Store]:
    stage = bounds.state.stages[stage_id]
    op = stage.op
    assert isinstance(op, ComputeOp)
    count = bounds.count
    loops = [loop for loop in bounds.nest(stage_id) if count[loop] != 1]
    is_reduction = bool(op.reduce_axis)
    kind = AccessType.READ_WRITE if is_reduction else AccessType.WRITE
    written = bounds.axes[stage_id][: len(op.axis)]
    width = _bytes_of(op)
    shape = _shape(op)
    own = Access(stage_id, kind, [written], shape, width)
    accesses: dict[int, Access] = {stage_id: own}
    for source, forms in bounds.reads[stage_id]:
        if source in accesses:
            accesses[source].indices.append(forms)
        else:
            producer = bounds.state.stages[source].op
            accesses[source] = Access(
                source, AccessType.READ, [forms], _shape(producer), _bytes_of(producer)
            )
    operations = list(_operations(bounds, stage_id))
    for access in accesses.values():
        if access is not own or is_reduction:
            for index in access.indices:
                for form in index:
                    count_index(form, operations)
    store = Store(stage_id, loops, list(accesses.values()), operations)
    store.auto_unroll_max_step = _unroll_step(bounds, stage_id)
    store.allocated = _allocation(bounds, stage_id, width)
    if not is_reduction:
        return [store]
    return [
        _initial(bounds, stage_id, Access(stage_id, AccessType.WRITE, [written], shape, width)),
        store,
    ]


def _initial(bounds: Bounds, stage_id: int, access: Access) -> Store:
    """The store of the neutral element, outside of the loops of the reduction."""
    stage = bounds.state.stages[stage_id]
    loops = list(bounds.paths[stage_id])
    inside = False
    # loops behind the reduction's first are repeated for it, and are others
    copies = {}
    for position, loop in enumerate(stage.iters):
        inside = inside or loop.iter_kind != LoopKind.SPATIAL
        if loop.iter_kind == LoopKind.SPATIAL:
            number = loop_id(stage_id, position)
            copies[number] = -number - 1 if inside else number
            bounds.count[copies[number]] = bounds.count[number]
            loops.append(copies[number])
    loops = [loop for loop in loops if bounds.count[loop] != 1]

    return Store(stage_id, loops, [access], [0.0] * 16)


def _unroll_step(bounds: Bounds, stage_id: int) -> int:
    """Of the stage, or of one whose loops are around it."""
    state = bounds.state
    step = state.stages[stage_id].attrs.auto_unroll_max_step
    while not step and stage_id in state.attached:
        stage_id = state.attached[stage_id][0]
        step = state.stages[stage_id].attrs.auto_unroll_max_step
    return step


def _allocation(bounds: Bounds, stage_id: int, width: int) -> tuple[int, float] | None:
    """Bytes of what is kept of a stage, and how often that is allocated."""
    if bounds.state.graph.access.is_output(bounds.state.stages[stage_id].op):
        return None
    size = width
    for extent in bounds.regions[stage_id]:
        size *= extent
    around = 1.0
    for loop in bounds.paths[stage_id]:
        around *= bounds.count[loop]
    return size, around


def _operations(bounds: Bounds, stage_id: int) -> list[float]:
    """Operations of the expression, with those of stages that are inlined into it."""
    state = bounds.state
    graph: ComputeGraph = state.graph
    own = _expression_counts(graph, graph.ops[stage_id])
    total = list(own[0])
    for source, times in own[1].items():
        position = graph.positions[source]
        if state.stages[position].compute_at == ComputeAt.INLINED:
            inner = _operations(bounds, position)
            total = [a + times * b for a, b in zip(total, inner, strict=True)]
    return total


Counts = tuple[list[float], dict[Operation, int]]


def _expression_counts(graph: ComputeGraph, op: Operation) -> Counts:
    """The operations of a compute's expression, and how often it reads others; found once a graph."""
    known: dict[Operation, Counts] = graph.__dict__.setdefault("_expression_counts", {})
    if op not in known:
        known[op] = _counted(op)
    return known[op]


class _Counter(OperationCounter):
    def __init__(self) -> None:
        super().__init__(counts_indices=False)
        self.reads: dict[Operation, int] = {}

    def visit_producer_load(self, load: ProducerLoad) -> None:
        if isinstance(load.producer, Tensor):
            op = load.producer.op
            self.reads[op] = self.reads.get(op, 0) + 1


@deep
def _counted(op: Operation) -> Counts:
    counter = _Counter()
    if isinstance(op, ComputeOp):
        first = op.body[0]
        if isinstance(first, Reduce):
            for value in (*first.combiner.result, *first.source):
                counter.visit(value)
        else:
            for value in op.body:
                counter.visit(value)
    return counter.counts, counter.reads


def _shape(op: Operation) -> list[int]:
    if isinstance(op, ComputeOp):
        return [constant_extent(axis) or 0 for axis in op.axis]
    return [int(getattr(dim, "value", 1)) for dim in op.output(0).shape]


def _bytes_of(op: Operation) -> int:
    return max(int(op.output_dtype(0).bits) // 8, 1)
