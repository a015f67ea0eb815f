"""What states are made of: loops, and stages with their loops and places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any, ClassVar

from tvm.runtime.object import Object
from tvm.te.tensor import ComputeOp, Operation, PlaceholderOp
from tvm.tir.expr import IntImm, Range


class LoopKind(IntEnum):
    """Where a loop comes from."""

    SPATIAL = 0
    REDUCTION = 1
    MIXED = 2
    SPECIAL = 3


class Annotation(IntEnum):
    """How a loop runs; the numbers are those of records."""

    NONE = 0
    UNROLL = 1
    VECTORIZE = 2
    PARALLEL = 3
    VTHREAD = 4
    BLOCK_X = 5
    THREAD_X = 6
    BLOCK_Y = 7
    THREAD_Y = 8
    BLOCK_Z = 9
    THREAD_Z = 10
    TENSORIZE = 11


# as states are printed, by the number of the annotation
ANNOTATION_NAMES = (
    "for", "unroll", "vectorize", "parallel", "vthread", "blockIdx.x", "threadIdx.x",
    "blockIdx.y", "threadIdx.y", "blockIdx.z", "threadIdx.z", "tensorize",
)  # fmt: skip
THREADS = frozenset(
    [
        Annotation.VTHREAD, Annotation.BLOCK_X, Annotation.BLOCK_Y, Annotation.BLOCK_Z,
        Annotation.THREAD_X, Annotation.THREAD_Y, Annotation.THREAD_Z,
    ]
)  # fmt: skip


class ComputeAt(IntEnum):
    """Where a stage is computed."""

    ROOT = 0
    INLINED = 1
    ITER = 2


@dataclass(frozen=True, slots=True, eq=False)
class Iterator(Object):
    """A loop of a stage.

    Attributes
    ----------
    name : str
        Splits add ``.0``, ``.1``; fused loops have the names of all, each with ``@`` behind.
    extent : int or None
        None where it is not known before bounds are inferred.
    iter_kind : LoopKind
        Spatial, of a reduction, or both.
    annotation : Annotation
        How it runs.
    orig_iters : tuple of Iterator
        The loops that were fused to it.
    key : int
        What the relations of its stage call it.
    """

    name: str
    extent: int | None
    iter_kind: LoopKind = LoopKind.SPATIAL
    annotation: Annotation = Annotation.NONE
    orig_iters: tuple[Iterator, ...] = ()
    key: int = 0

    @property
    def range(self) -> Range | None:
        """From 0 to the extent, or None if that is not known."""
        if self.extent is None:
            return None
        return Range.from_min_extent(IntImm("int32", 0), IntImm("int32", self.extent))

    def with_extent(self, extent: int | None) -> Iterator:
        """The loop with another extent."""
        if extent == self.extent:
            return self
        return Iterator(
            self.name, extent, self.iter_kind, self.annotation, self.orig_iters, self.key
        )

    def with_annotation(self, annotation: Annotation) -> Iterator:
        """The loop running in another way."""
        return Iterator(
            self.name, self.extent, self.iter_kind, annotation, self.orig_iters, self.key
        )


@dataclass(frozen=True, slots=True, eq=False)
class SplitRelation:
    """A loop and those that it was split into, outer ones first; None where a length is not known."""

    parent: int
    children: tuple[int, ...]
    lengths: tuple[int | None, ...]
    inner_to_outer: bool

    def extents(self, extent: int, is_bound: bool) -> list[int]:
        """The extents of the parts of a loop of this extent.

        No part is longer than what it covers, but loops that are bound to threads.
        """
        found = []
        for length in reversed(self.lengths) if self.inner_to_outer else self.lengths:
            assert length is not None, "extents are asked for where all lengths are known"
            part = length if is_bound else min(length, max(extent, 1))
            found.append(part)
            extent = -(-extent // part)
        found.append(extent)
        return found[::-1] if self.inner_to_outer else found


@dataclass(frozen=True, slots=True, eq=False)
class FuseRelation:
    """Consecutive loops and the one that they were fused to."""

    parents: tuple[int, ...]
    child: int


Relation = SplitRelation | FuseRelation


def split_extents(
    extent: int | None, lengths: Sequence[int | None], inner_to_outer: bool
) -> list[int | None]:
    """The extents of loops that one of the given extent is split into, outer ones first."""
    extents: list[int | None] = []
    for length in reversed(lengths) if inner_to_outer else lengths:
        extents.append(length)
        extent = -(-extent // length) if extent is not None and length is not None else None
    extents.append(extent)
    if inner_to_outer:
        extents.reverse()
    return extents


@dataclass(frozen=True, slots=True)
class StageAttributes(Object):
    """What was said of a stage as a whole."""

    auto_unroll_max_step: int = 0
    storage_offset: int = 0


NO_ATTRIBUTES = StageAttributes()


@dataclass(frozen=True, slots=True, eq=False)
class Stage(Object):
    """An operation, its loops from the outermost, and where it is computed.

    ``relations`` tell how the loops come from the axes of the operation.
    """

    # where a classic program finds the numbers of `compute_at`
    COMPUTE_AT_TRANS_TABLE: ClassVar[Mapping[str, int]] = {
        "root": ComputeAt.ROOT,
        "inlined": ComputeAt.INLINED,
        "iter": ComputeAt.ITER,
    }

    op: Operation
    iters: tuple[Iterator, ...]
    compute_at: int = ComputeAt.ROOT
    attrs: StageAttributes = field(default=NO_ATTRIBUTES)
    relations: tuple[Relation, ...] = ()
    next_key: int = 0

    @classmethod
    def of(cls, op: Operation, compute_at: int = ComputeAt.ROOT) -> Stage:
        """The stage of an operation that no step has changed."""
        iters = tuple(root_iterators(op))
        return cls(op, iters, compute_at, next_key=len(iters))

    @property
    def op_type(self) -> int:
        """0 for placeholders, 1 for computes."""
        return 0 if isinstance(self.op, PlaceholderOp) else 1

    def with_iters(self, iters: tuple[Iterator, ...]) -> Stage:
        """The stage with other loops."""
        return Stage(self.op, iters, self.compute_at, self.attrs, self.relations, self.next_key)

    def related(self, iters: tuple[Iterator, ...], relation: Relation, added: int) -> Stage:
        """The stage with loops of which ``added`` are new, by a relation."""
        relations = (*self.relations, relation)
        key = self.next_key + added
        return Stage(self.op, iters, self.compute_at, self.attrs, relations, key)

    def with_op(self, op: Operation) -> Stage:
        """The stage of what takes the operation's place."""
        if op is self.op:
            return self
        return Stage(op, self.iters, self.compute_at, self.attrs, self.relations, self.next_key)

    def with_attrs(self, **changes: Any) -> Stage:
        """The stage with other attributes."""
        return replace(self, attrs=replace(self.attrs, **changes))

    def index_of(self, iterator: Iterator) -> int:
        """The position of a loop; -1 if it is not the stage's."""
        for position, found in enumerate(self.iters):
            if found is iterator:
                return position
        return -1


def root_iterators(op: Operation) -> list[Iterator]:
    """A loop for each axis of an operation."""
    if not isinstance(op, ComputeOp):
        return []
    count = len(op.axis)
    kinds = [LoopKind.SPATIAL] * count + [LoopKind.REDUCTION] * len(op.reduce_axis)
    return [
        Iterator(clean_name(iv.var.name), constant_extent(iv), kind, key=key)
        for key, (iv, kind) in enumerate(zip(op.root_iter_vars(), kinds, strict=True))
    ]


def constant_extent(axis: Any) -> int | None:
    """The number of elements along an axis of an operation, or None if it is not constant."""
    extent = axis.dom.extent
    return int(extent.value) if isinstance(extent, IntImm) else None


def clean_name(name: str) -> str:
    """The name of a loop as states and their Python code have it."""
    for old, new in ((".", "_"), ("@", "_"), ("outer", "o"), ("inner", "i")):
        name = name.replace(old, new)
    return name
