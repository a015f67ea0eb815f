"""What a reduction reads, as linear functions of its axes: how much memory a part of it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from tvm import te, tir
from tvm.arith import detect_linear_equation
from tvm.tir.stmt_functor import post_order_visit


def extent_of(axis: tir.IterVar) -> int:
    """The extent of an axis, which is constant."""
    assert axis.dom is not None and isinstance(axis.dom.extent, tir.IntImm)
    return axis.dom.extent.value


@dataclass(frozen=True)
class Read:
    """One tensor that the reduction reads: for each dimension, the steps by axes, or None where it may be anywhere."""

    tensor: te.Tensor
    shape: tuple[int, ...]
    steps: tuple[tuple[int, ...] | None, ...]
    itemsize: int

    def footprint(self, counts: Sequence[int]) -> int:
        """The elements that are read by so many iterations of each axis."""
        size = 1
        for extent, steps in zip(self.shape, self.steps, strict=True):
            if steps is None:
                size *= extent
                continue
            span = 1 + sum([abs(step) * (n - 1) for step, n in zip(steps, counts, strict=True)])
            size *= min(span, extent)
        return size

    def is_innermost(self, axis: int) -> bool:
        """Whether neighbouring iterations of an axis read neighbouring elements."""
        steps = self.steps[-1] if self.steps else None
        others = [found for found in self.steps[:-1] if found is None or found[axis] != 0]
        return steps is not None and abs(steps[axis]) == 1 and not others


@dataclass(frozen=True)
class Reads:
    """All reads of a reduction, whose axes are the spatial ones and then those of the reduction."""

    reads: tuple[Read, ...]
    spatial: tuple[int, ...]
    reduced: tuple[int, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """Of all axes."""
        return self.spatial + self.reduced

    @property
    def work(self) -> int:
        """How many values are combined."""
        return prod(self.extents)

    @staticmethod
    def of(op: te.tensor.ComputeOp) -> Reads | None:
        """The reads of a reduction of constant extents; None for others."""
        axes = [*op.axis, *op.reduce_axis]
        found_extents = [axis.dom.extent if axis.dom is not None else None for axis in axes]
        numbers = [extent.value for extent in found_extents if isinstance(extent, tir.IntImm)]
        if len(numbers) < len(axes) or min(numbers, default=1) < 1:
            return None
        variables = [axis.var for axis in axes]
        found: dict[int, Read] = {}

        def visit(node: object) -> None:
            if isinstance(node, tir.ProducerLoad):
                read = _read(node, variables)
                if read is not None:
                    known = found.get(id(node.producer))
                    found[id(node.producer)] = read if known is None else _joined(known, read)

        body = op.body[0]
        for part in [*body.source, body.condition] if isinstance(body, tir.Reduce) else [body]:
            post_order_visit(part, visit)
        count = len(op.axis)
        return Reads(tuple(found.values()), tuple(numbers[:count]), tuple(numbers[count:]))


def _read(load: tir.ProducerLoad, variables: Sequence[tir.Var]) -> Read | None:
    tensor = load.producer
    assert isinstance(tensor, te.Tensor)
    if not all([isinstance(dim, tir.IntImm) for dim in tensor.shape]):
        return None
    steps = []
    for index in load.indices:
        found = detect_linear_equation(index, variables)
        constant = [step.value for step in found[:-1] if isinstance(step, tir.IntImm)]
        steps.append(tuple(constant) if found and len(constant) == len(variables) else None)
    shape = tuple([dim.value for dim in tensor.shape if isinstance(dim, tir.IntImm)])
    return Read(tensor, shape, tuple(steps), tensor.dtype.itemsize)


def _joined(a: Read, b: Read) -> Read:
    """Two reads of one tensor."""
    steps = [x if x == y else None for x, y in zip(a.steps, b.steps, strict=True)]
    return Read(a.tensor, a.shape, tuple(steps), a.itemsize)
