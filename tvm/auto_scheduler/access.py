"""Who reads whom in a graph of operations, and how: what the rules of sketches ask.

C[i, j] = max(B[i, j], 0)        B is read element-wise by C; C may always be inlined
D[i, j] = sum(C[i, k] * W[k, j]) each element of C and W is used many times: D wants tiles
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Visitor
from tvm.support.scope import deep
from tvm.te.tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from tvm.tir.expr import Add, Call, IntImm, ProducerLoad, Reduce, Select, Sub
from tvm.tir.stmt_functor import variables_of

from .loops import constant_extent

Indices = tuple[PrimExpr, ...]
# math functions that are too expensive to be computed again by each reader
_EXPENSIVE = frozenset(
    f"tir.{name}"
    for name in [
        "exp",
        "exp2",
        "exp10",
        "log",
        "log2",
        "log10",
        "log1p",
        "tanh",
        "sigmoid",
        "erf",
        "pow",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "atan2",
        "sinh",
        "cosh",
        "asinh",
        "acosh",
        "atanh",
    ]
)


class SimpleAccess(NamedTuple):
    """How indices that are axes, shifted by constants, use the axes of the reader."""

    axis_missing: bool
    axis_duplicated: bool
    same_order: bool

    @property
    def is_elementwise(self) -> bool:
        """Whether each element is read once, where it is written."""
        return not self.axis_missing and not self.axis_duplicated and self.same_order


class AccessAnalyzer:
    """What operations read.

    Parameters
    ----------
    ops : sequence of Operation
        In the order of computation.

    Attributes
    ----------
    read_from, read_by : dict of Operation to dict
        The indices of all reads, by the reader and what it reads.
    """

    def __init__(self, ops: Sequence[Operation]) -> None:
        self.ops = tuple(ops)
        self.read_from: dict[Operation, dict[Operation, list[Indices]]] = {}
        self.read_by: dict[Operation, dict[Operation, list[Indices]]] = {op: {} for op in ops}
        self.strictly_inlineable: dict[Operation, bool] = {}
        self.simple_access: dict[Operation, bool] = {}
        self.wants_tiles: dict[Operation, bool] = {}
        for op in ops:
            self._add(op)

    def _add(self, op: Operation) -> None:
        reads = self.read_from[op] = {}
        if not isinstance(op, ComputeOp):
            self.strictly_inlineable[op] = self.simple_access[op] = self.wants_tiles[op] = False
            return
        finder = _Reads()
        finder.read(op)
        reads.update(finder.found)
        for source, indices in reads.items():
            self.read_by[source].setdefault(op, []).extend(indices)
        simple = [simple_access(op, indices) for each in reads.values() for indices in each]
        is_simple = self.simple_access[op] = all([access is not None for access in simple])
        keeps_order = all([a is None or (a.same_order and not a.axis_duplicated) for a in simple])
        self.strictly_inlineable[op] = (
            is_simple and keeps_order and not finder.is_expensive and not finder.has_branch
        )
        self.wants_tiles[op] = _has_reuse(op, reads)

    def is_output(self, op: Operation) -> bool:
        """Whether nobody reads it."""
        return not isinstance(op, PlaceholderOp) and not self.read_by[op]

    def consumers(self, op: Operation) -> list[Operation]:
        """The operations that read it."""
        return list(self.read_by[op])

    def producers(self, op: Operation) -> list[Operation]:
        """The operations that it reads."""
        return list(self.read_from[op])

    def is_elementwise_chain(self, op: Operation, target: Operation) -> bool:
        """Whether from ``op`` to ``target`` each operation has one reader, which reads it element-wise."""
        while op is not target:
            readers = self.read_by[op]
            if len(readers) != 1:
                return False
            ((reader, reads),) = readers.items()
            if not _same_shapes(op, reader):
                return False
            assert isinstance(reader, ComputeOp)
            for indices in reads:
                access = simple_access(reader, indices)
                if access is None or not access.is_elementwise:
                    return False
            op = reader
        return True

    def common_outer_axes(self, op: Operation, target: Operation) -> int:
        """How many outer axes go unchanged from an operation to another one, on all ways between them."""
        known: dict[Operation, int] = {target: len(getattr(target, "axis", ()))}

        def count(source: Operation) -> int:
            if source not in known:
                readers = self.read_by[source]
                found = [min(self._kept_axes(source, each), count(each)) for each in readers]
                known[source] = min(found, default=0)
            return known[source]

        return count(op)

    def _kept_axes(self, op: Operation, reader: Operation) -> int:
        """The leading axes of an operation that a reader reads by its own axes at the same places."""
        assert isinstance(op, ComputeOp) and isinstance(reader, ComputeOp)
        pairs = list(zip(op.axis, reader.axis, strict=False))
        count = len(pairs)
        for indices in self.read_by[op][reader]:
            for place, (written, read) in enumerate(pairs[:count]):
                same_extent = constant_extent(written) == constant_extent(read)
                if indices[place] is not read.var or not same_extent:
                    count = place
                    break
        return count


class _Reads(Visitor):
    """The indices of all reads of an operation's body."""

    def __init__(self) -> None:
        self.found: dict[Operation, list[Indices]] = {}
        self.is_expensive = False
        self.has_branch = False

    @deep
    def read(self, op: ComputeOp) -> None:
        for value in op.body[:1] if isinstance(op.body[0], Reduce) else op.body:
            self.visit(value)

    def visit_producer_load(self, load: ProducerLoad) -> None:
        if isinstance(load.producer, Tensor):
            self.found.setdefault(load.producer.op, []).append(load.indices)
        self.visit_children(load)

    def visit_call(self, call: Call) -> None:
        name = getattr(call.op, "name", "")
        self.is_expensive = self.is_expensive or name in _EXPENSIVE
        self.has_branch = self.has_branch or name == "tir.if_then_else"
        self.visit_children(call)

    def visit_select(self, select: Select) -> None:
        self.has_branch = True
        self.visit_children(select)


def simple_access(op: ComputeOp, indices: Indices) -> SimpleAccess | None:
    """How indices use the axes of ``op``; None if one is neither constant nor an axis with a shift."""
    places = []
    for index in indices:
        if isinstance(index, IntImm):
            continue
        place = _axis_of(op, index)
        if place is None:
            return None
        places.append(place)
    return SimpleAccess(
        axis_missing=len(set(places)) < len(op.axis),
        axis_duplicated=len(set(places)) < len(places),
        same_order=places == sorted(places),
    )


def _axis_of(op: ComputeOp, index: PrimExpr) -> int | None:
    if isinstance(index, (Add, Sub)):
        if isinstance(index.b, IntImm):
            index = index.a
        elif isinstance(index, Add) and isinstance(index.a, IntImm):
            index = index.b
    for place, axis in enumerate(op.axis):
        if axis.var is index:
            return place
    return None


def _same_shapes(op: Operation, reader: Operation) -> bool:
    if not isinstance(op, ComputeOp) or not isinstance(reader, ComputeOp):
        return False
    shape = [constant_extent(axis) for axis in op.axis]
    return shape == [constant_extent(axis) for axis in reader.axis]


def _has_reuse(op: ComputeOp, reads: dict[Operation, list[Indices]]) -> bool:
    """Whether elements of inputs are used again along axes: those of two inputs, or in a reduction."""
    missing = 0
    for each in reads.values():
        used = variables_of(*[index for indices in each for index in indices])
        if any([constant_extent(axis) != 1 and axis.var not in used for axis in op.axis]):
            missing += 1
    return missing >= 2 or (missing >= 1 and bool(op.reduce_axis))
