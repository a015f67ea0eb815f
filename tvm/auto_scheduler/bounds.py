"""The extents of all loops of a state, and what each stage reads as affine forms of the loops around it.

for i.0 (0,32):                     B is computed at i.0 of C, which reads B[i] and B[i + 1]
    for i.1 (0,16): C[i] = ...      in 16 iterations: B has 17
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.ir.expr import PrimExpr
from tvm.te.tensor import ComputeOp, Operation

from .affine import ZERO, AffineForm, Capped
from .graph import ComputeGraph
from .indices import Index, parse_index
from .loops import THREADS, ComputeAt, FuseRelation, Stage, constant_extent
from .state_object import StateObject
from .steps import StepError

_LOOPS = 1 << 10  # of a stage at most

Read = tuple[int, list[AffineForm]]  # of which stage, at which indices


def loop_id(stage_id: int, position: int) -> int:
    """The number of a loop in affine forms."""
    return stage_id * _LOOPS + position


@dataclass
class Bounds:
    """What is known of a state's loops.

    Attributes
    ----------
    extents : list of list of int
        Of the loops of each stage; empty for placeholders and inlined stages.
    count : dict of int to int
        The same by the numbers of the loops.
    axes : list of list of AffineForm
        The values of the axes of each stage's operation.
    reads : list of list of Read
        What each stage reads, of stages that are not inlined.
    paths : list of list of int
        The loops of other stages around each stage, from the outermost.
    regions : list of list of int
        The extents of what is computed of each axis, within those loops.
    """

    state: StateObject
    extents: list[list[int]]
    axes: list[list[AffineForm]]
    reads: list[list[Read]]
    paths: list[list[int]]
    regions: list[list[int]]
    count: dict[int, int] = field(default_factory=dict)

    def nest(self, stage_id: int) -> list[int]:
        """All loops around a stage's statement, from the outermost."""
        own = [loop_id(stage_id, i) for i in range(len(self.extents[stage_id]))]
        return self.paths[stage_id] + own

    def with_extents(self) -> StateObject:
        """The state with the extents of all loops."""
        stages = []
        for stage, extents in zip(self.state.stages, self.extents, strict=True):
            if extents and [loop.extent for loop in stage.iters] != extents:
                pairs = zip(stage.iters, extents, strict=True)
                stage = stage.with_iters(tuple([loop.with_extent(e) for loop, e in pairs]))
            stages.append(stage)
        return self.state.with_stages(tuple(stages))


def parsed_reads(graph: ComputeGraph) -> list[list[tuple[int, list[Index]]]]:
    """What each operation of a graph reads: the position of the source, and the indices."""
    found = graph.__dict__.get("_parsed_reads")
    if found is None:
        found = graph.__dict__["_parsed_reads"] = [
            [
                (graph.positions[source], _parsed(op, indices, source))
                for source, reads in graph.access.read_from[op].items()
                for indices in reads
            ]
            for op in graph.ops
        ]
    return found


def _parsed(op: Operation, indices: Sequence[PrimExpr], source: Operation) -> list[Index]:
    assert isinstance(op, ComputeOp)
    return [
        parse_index(op, index, int(getattr(dim, "value", 1)))
        for index, dim in zip(indices, source.output(0).shape, strict=True)
    ]


def infer_bounds(state: StateObject) -> Bounds:
    """The bounds of a state whose splits all have lengths."""
    if not state.concrete:
        raise StepError(
            "bounds require lengths for all splits of a state, got a sketch",
            hint="policy.sample_initial_population() fills in those of sketches",
        )
    count = len(state.stages)
    bounds = Bounds(
        state, [[] for _ in range(count)], [[] for _ in range(count)],
        [[] for _ in range(count)], [[] for _ in range(count)], [[] for _ in range(count)],
    )  # fmt: skip
    inference = _Inference(state, bounds)
    for stage_id in range(count - 1, -1, -1):
        inference.visit(stage_id)
    return bounds


class _Inference:
    """Visits stages behind all of their readers."""

    def __init__(self, state: StateObject, bounds: Bounds) -> None:
        self.state = state
        self.bounds = bounds
        self.parsed = parsed_reads(state.graph)
        self.outputs = {state.graph.positions[op] for op in state.graph.outputs}
        # of each stage, who reads it and at which indices
        self.needs: dict[int, list[tuple[int, list[AffineForm]]]] = {}

    def visit(self, stage_id: int) -> None:
        stage = self.state.stages[stage_id]
        op = stage.op
        if not isinstance(op, ComputeOp) or stage.compute_at == ComputeAt.INLINED:
            return
        bounds = self.bounds
        path = bounds.paths[stage_id] = self._path(stage_id)
        is_output = stage_id in self.outputs
        shape = [constant_extent(axis) or 0 for axis in op.axis]
        region = [(ZERO, n) for n in shape] if is_output else self._region(stage_id, path, shape)
        reduced = [(ZERO, constant_extent(axis) or 0) for axis in op.reduce_axis]
        domain = [*region, *reduced]
        bounds.regions[stage_id] = [extent for _, extent in region]
        extents = _extents_of_loops(stage, [extent for _, extent in domain])
        own = [extents[loop.key] for loop in stage.iters]
        bounds.extents[stage_id] = own
        for position, extent in enumerate(own):
            bounds.count[loop_id(stage_id, position)] = extent
        values = _axes_of_loops(stage, stage_id, extents, len(domain))
        axes = []
        for (start, extent), value in zip(domain, values, strict=True):
            if value.count(bounds.count.__getitem__) > extent:
                value = AffineForm(0, {Capped(value, extent): 1}) if extent > 1 else ZERO
            axes.append(start.plus(value) if start.terms or start.const else value)
        bounds.axes[stage_id] = axes
        reads = bounds.reads[stage_id] = self._resolved(stage_id, axes)
        for source, forms in reads:
            self.needs.setdefault(source, []).append((stage_id, forms))

    def _path(self, stage_id: int) -> list[int]:
        place = self.state.attached.get(stage_id)
        if place is None:
            return []
        target, position = place
        return self.bounds.paths[target] + [loop_id(target, i) for i in range(position + 1)]

    def _region(
        self, stage_id: int, path: Sequence[int], shape: Sequence[int]
    ) -> list[tuple[AffineForm, int]]:
        """The start and the extent of what readers need of each axis, within the loops of the path."""
        still = frozenset(path)
        count = self.bounds.count

        def counts(loop: int) -> int:
            return 1 if loop in still else count[loop]

        found: list[tuple[AffineForm, int] | None] = [None] * len(shape)
        needs = self.needs.get(stage_id, [])
        if not needs:
            return [(ZERO, n) for n in shape]
        for axis, extent in enumerate(shape):
            for _, forms in needs:
                form = forms[axis]
                part = (form.at_start(counts), form.count(counts))
                known = found[axis]
                found[axis] = part if known is None else _hull(known, part, extent)
        return [
            (ZERO, extent) if part is None or (part[1] > extent and not part[0].terms) else part
            for part, extent in zip(found, shape, strict=True)
        ]

    def _resolved(self, stage_id: int, axes: Sequence[AffineForm]) -> list[Read]:
        """What a stage reads, through stages that are inlined into it."""
        reads: list[Read] = []
        for source, indices in self.parsed[stage_id]:
            forms = [index(axes) for index in indices]
            if self.state.stages[source].compute_at == ComputeAt.INLINED:
                reads.extend(self._resolved(source, forms))
            else:
                reads.append((source, forms))
        return reads


def _hull(
    a: tuple[AffineForm, int], b: tuple[AffineForm, int], extent: int
) -> tuple[AffineForm, int]:
    if a[0].terms != b[0].terms:
        return ZERO, extent
    first = min(a[0].const, b[0].const)
    last = max(a[0].const + a[1], b[0].const + b[1])
    return AffineForm(first, a[0].terms), last - first


def _extents_of_loops(stage: Stage, domain: Sequence[int]) -> dict[int, int]:
    """The extents of all loops from those of the axes."""
    extents = dict(enumerate(domain))
    bound = {loop.key for loop in stage.iters if loop.annotation in THREADS}
    for relation in stage.relations:
        if isinstance(relation, FuseRelation):
            product = 1
            for parent in relation.parents:
                product *= extents[parent]
            extents[relation.child] = product
        else:
            is_bound = not bound.isdisjoint(relation.children)
            parts = relation.extents(extents[relation.parent], is_bound)
            extents.update(zip(relation.children, parts, strict=True))
    return extents


def _axes_of_loops(
    stage: Stage, stage_id: int, extents: dict[int, int], count: int
) -> list[AffineForm]:
    """The values of the axes, counted from the start of what is computed, from those of loops."""
    forms: dict[int, AffineForm] = {}
    for position, loop in enumerate(stage.iters):
        is_one = extents[loop.key] == 1
        forms[loop.key] = ZERO if is_one else AffineForm(0, {loop_id(stage_id, position): 1})
    for relation in reversed(stage.relations):
        if isinstance(relation, FuseRelation):
            value, inner = forms[relation.child], 1
            for parent in reversed(relation.parents):
                extent = extents[parent]
                quotient = value.floordiv(inner) if inner > 1 else value
                is_outer = parent == relation.parents[0]
                forms[parent] = quotient if is_outer else quotient.floormod(extent)
                inner *= extent
            continue
        total, factor = ZERO, 1
        for child in reversed(relation.children):
            total = total.plus(forms[child], factor)
            factor *= extents[child]
        forms[relation.parent] = total
    return [forms[axis] for axis in range(count)]
