"""Layouts of results in memory, and loops in their order.

s[B].transform_layout(lambda i, j: [i // 4, j, i % 4])

for i, j:                          for i//4, j, i%4:
    B[i, j] = A[i, j]     ->           B[i//4, j, i%4] = A[...]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tvm.arith import Analyzer
from tvm.error import ScheduleError
from tvm.ir.expr import PrimExpr
from tvm.tir.buffer import Buffer
from tvm.tir.constants import is_zero
from tvm.tir.expr import IntImm, IterVar, Range, Var, const
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt_functor import variables_of

from ..tensor import Tensor
from .intervals import from_range, in_dtype, interval_of, point, to_range
from .relations import Ranges, Relation, Sets, Unchecked, Values

if TYPE_CHECKING:
    from .stage_state import StageState


# stands for a symbolic extent when elements are looked for that share a place
SAMPLE = 29


@dataclass(frozen=True)
class Layout:
    """Where the elements of a tensor lie: maps, one after the other, and separators at last."""

    maps: tuple[IndexMap, ...] = ()
    separators: tuple[int, ...] = ()

    def then(self, index_map: IndexMap, separators: Sequence[int]) -> Layout:
        """The layout with one more map behind it."""
        return Layout((*self.maps, index_map), tuple(separators))

    def check(self, name: str, shape: Sequence[PrimExpr], index_map: IndexMap) -> None:
        """Reject a further map that puts two elements into one place, or leaves a gap in front."""
        region = self.region([Range(0, dim) for dim in shape])
        for index, domain in zip(
            index_map.final_indices, map_region(index_map, region, Analyzer()), strict=True
        ):
            if not Analyzer().can_prove_equal(domain.min, 0):
                raise ScheduleError(
                    f"transform_layout requires indices that begin with 0, got {index} for {name}, "
                    f"which begins with {domain.min}"
                )
        extents = [dim.extent.value if isinstance(dim.extent, IntImm) else SAMPLE for dim in region]
        if not index_map.is_injective(extents):
            indices = ", ".join([str(index) for index in index_map.final_indices])
            raise ScheduleError(
                "transform_layout requires a place of its own for each element, "
                f"got [{indices}] for {name}",
                hint="keep what a division loses: [i // 4, i % 4] instead of [i // 4]",
            )

    def indices(self, indices: Sequence[PrimExpr]) -> tuple[PrimExpr, ...]:
        """Where an element lies."""
        for index_map in self.maps:
            indices = index_map.map_indices(indices)
        return tuple(indices)

    def region(self, region: Sequence[Range]) -> tuple[Range, ...]:
        """The hull of where the elements of a region lie."""
        for index_map in self.maps:
            region = map_region(index_map, region, Analyzer())
        return tuple(region)

    def buffer(self, buffer: Buffer) -> Buffer:
        """The buffer with the shape that the layout has in memory."""
        if buffer.strides:
            raise ScheduleError(
                f"transform_layout requires a compact buffer, got {buffer.name} with strides"
            )
        whole = [Range(0, dim) for dim in buffer.shape]
        shape = tuple([domain.extent for domain in self.region(whole)])
        separators = tuple([IntImm("int32", position) for position in self.separators])
        offset = in_dtype(buffer.elem_offset, shape[0].dtype) if shape else buffer.elem_offset
        return buffer.replace(shape=shape, axis_separators=separators, elem_offset=offset)


def map_region(
    index_map: IndexMap, region: Sequence[Range], analyzer: Analyzer
) -> tuple[Range, ...]:
    """The hull of the image of a region."""
    pairs = zip(index_map.initial_indices, region, strict=True)
    domains = {var: from_range(domain) for var, domain in pairs}
    found = []
    for index in index_map.final_indices:
        values = interval_of(index, domains, analyzer)
        if values.low is None or values.high is None:
            raise ScheduleError(
                f"transform_layout requires indices with known bounds, got {index}",
                hint="use sums, products, // and % by constants",
            )
        found.append(to_range(values, Range(0, 1), analyzer))
    return tuple(found)


class Transform(Relation):
    """``children = map(parents)``, and back by the inverse."""

    __slots__ = ("back", "forward", "new", "old")
    may_fall_below = True

    def __init__(
        self,
        old: Sequence[IterVar],
        new: Sequence[IterVar],
        forward: IndexMap,
        back: IndexMap,
    ) -> None:
        self.old, self.new = tuple(old), tuple(new)
        self.forward, self.back = forward, back

    def __repr__(self) -> str:
        names = [", ".join([iv.var.name for iv in side]) for side in (self.old, self.new)]
        return f"transform({names[0]} -> {names[1]})"

    @property
    def parents(self) -> tuple[IterVar, ...]:
        return self.old

    @property
    def children(self) -> tuple[IterVar, ...]:
        return self.new

    def pass_down(self, ranges: Ranges, threaded: Mapping[IterVar, bool]) -> None:
        used = variables_of(*self.back.final_indices)
        pairs = zip(self.new, self.back.initial_indices, self._region(ranges), strict=True)
        for iv, var, domain in pairs:
            # the way back tells no elements apart by it: there is one only
            one = const(1, domain.extent.dtype)
            ranges.learn(iv, 0, domain.extent if var in used else one)

    def _region(self, ranges: Mapping[IterVar, Range]) -> tuple[Range, ...]:
        """Where the elements lie; the new loops count from its beginning."""
        return map_region(self.forward, [ranges[iv] for iv in self.old], Analyzer())

    def _old_values(self, ranges: Mapping[IterVar, Range], new: Sequence[PrimExpr]) -> Any:
        """The values of the old loops where the new ones have these values."""
        begins = [domain.min for domain in self._region(ranges)]
        values = [v if is_zero(begin) else v + begin for v, begin in zip(new, begins, strict=True)]
        return _mapped(self.back, values)

    def _exceeds(self, ranges: Mapping[IterVar, Range], analyzer: Analyzer) -> bool:
        """Whether the new loops have more iterations than there are elements."""
        sizes = [_product([ranges[iv].extent for iv in side]) for side in (self.old, self.new)]
        return not analyzer.can_prove_equal(*sizes)

    def _leaves_axes(self, ranges: Mapping[IterVar, Range], analyzer: Analyzer) -> bool:
        """Whether a part reaches beyond the axes: the way back knows of no such elements."""
        for iv in self.old:
            assert iv.dom is not None
            end = ranges[iv].min + ranges[iv].extent
            below = ranges[iv].min >= iv.dom.min
            if not (analyzer.can_prove(below) and analyzer.can_prove(end <= iv.dom.extent)):
                return True
        return False

    def pass_up_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if all(iv in values for iv in self.new):
            found = self._old_values(ranges, [values[iv] for iv in self.new])
            for iv, value in zip(self.old, found, strict=True):
                values[iv] = in_dtype(value, iv.var.dtype)

    def pass_down_values(self, ranges: Mapping[IterVar, Range], values: Values) -> None:
        if all(iv in values for iv in self.old):
            found = _mapped(self.forward, [values[iv] for iv in self.old])
            region = self._region(ranges)
            for iv, value, domain in zip(self.new, found, region, strict=True):
                offset = value if is_zero(domain.min) else value - domain.min
                values[iv] = in_dtype(offset, iv.var.dtype)

    def pass_up_sets(self, ranges: Mapping[IterVar, Range], sets: Sets, analyzer: Analyzer) -> None:
        known = [sets.get(iv) for iv in self.new]
        points = [
            one.low for one in known if one is not None and one.low is not None and one.is_point
        ]
        if len(points) == len(self.new):
            found = [point(value) for value in self._old_values(ranges, points)]
        else:
            found = [from_range(ranges[iv]) for iv in self.old]
        sets.update(zip(self.old, found, strict=True))

    def pass_up_checks(
        self, ranges: Mapping[IterVar, Range], unchecked: Unchecked, analyzer: Analyzer
    ) -> None:
        # a new loop beyond its extent may lead to an element that another iteration has: its own
        # check stays
        inside = any(iv in unchecked for iv in self.new)
        if inside or self._exceeds(ranges, analyzer) or self._leaves_axes(ranges, analyzer):
            unchecked.update(dict.fromkeys(self.old))


def _mapped(index_map: IndexMap, values: Sequence[PrimExpr]) -> list[PrimExpr]:
    """The map of values, which may be of another dtype than its variables."""
    variables = index_map.initial_indices
    return index_map.map_indices(
        [in_dtype(value, var.dtype) for value, var in zip(values, variables, strict=True)]
    )


def _product(extents: Sequence[PrimExpr]) -> PrimExpr:
    total: PrimExpr = IntImm("int32", 1)
    for extent in extents:
        total = total * extent
    return total


def transform_loops(stage: StageState, index_map: IndexMap) -> list[IterVar] | None:
    """Let the loops over the axes of the result follow its layout, if they are untouched."""
    own: dict[IterVar, None] = dict.fromkeys(stage.op.axis)
    axes = list(own)
    places = [position for position, iv in enumerate(stage.leaf_iter_vars) if iv in own]
    extents = [None if iv.dom is None else iv.dom.extent for iv in axes]
    shape = [extent.value for extent in extents if isinstance(extent, IntImm)]
    if not axes or len(places) != len(axes) or len(shape) != len(axes):
        return None
    there = stage.leaf_iter_vars[places[0] : places[0] + len(axes)]
    if any(loop is not iv for loop, iv in zip(there, axes, strict=False)):
        return None
    try:
        back, _ = index_map.non_surjective_inverse(shape)
    except ValueError:
        return None
    new = [
        IterVar(Range(0, extent), Var(f"axis{k}", var.dtype), axes[0].iter_type)
        for k, (var, extent) in enumerate(
            zip(back.initial_indices, index_map.map_shape(shape), strict=True)
        )
    ]
    stage.apply_relation(Transform(axes, new, index_map, back), new)
    stage.leaf_iter_vars[places[0] : places[0] + len(axes)] = new
    return new


def layouts_of(stages: Sequence[StageState]) -> dict[Tensor, Layout]:
    """The layouts of the tensors that do not lie in order."""
    return {
        tensor: stage.layout for stage in stages for tensor in stage.op.outputs if stage.layout.maps
    }
