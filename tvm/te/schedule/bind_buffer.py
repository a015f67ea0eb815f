"""Letting a body that was written for a placeholder buffer work on a tensor's own buffer.

the body uses P[i], declared with 16 elements          ->     uses C[x*16 + i]
P stands for C[x*16 : x*16 + 16]

The variables in which the placeholder's shape, strides and offset are given get their values; what
it declares as constant has to be so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.tir import op as tir_op
from tvm.tir.buffer import Buffer
from tvm.tir.constants import is_one
from tvm.tir.expr import BufferLoad, IntImm, Range, Var, const
from tvm.tir.stmt import BufferStore, Stmt
from tvm.tir.stmt_functor import Substituter, substitute

# factor and offset of the stride of a dimension
Aligns = Mapping[int, tuple[int, int]]


def bind_placeholder(
    body: Stmt,
    placeholder: Buffer,
    actual: Buffer,
    region: Sequence[Range] | None = None,
    bounds: Sequence[Range] | None = None,
    aligns: Aligns | None = None,
) -> Stmt:
    """The body with ``actual``, or a part of it, for ``placeholder``.

    Parameters
    ----------
    region : list of Range, optional
        What the placeholder stands for, by default all of the buffer.
    bounds : list of Range, optional
        The part of the buffer that is kept in memory, by default all of it.
    aligns : dict of int to (factor, offset), optional
        How the strides of a buffer that is kept in parts are padded.
    """
    if region is None:
        region = [Range.from_min_extent(const(0, dim.dtype), dim) for dim in actual.shape]
    lead = len(region) - len(placeholder.shape)
    if lead < 0 or any(not is_one(domain.extent) for domain in region[:lead]):
        raise LoweringError(
            f"buffer {placeholder.name} requires a region of {len(placeholder.shape)} dimensions, "
            f"got {_region_text(actual, region)}",
            hint="more dimensions may be in front, of extent 1",
        )
    mapping = _Layout(placeholder, actual, region, bounds, aligns or {}).values()
    mins = [domain.min for domain in region]
    rewritten: Stmt = _PlaceholderBinder(placeholder, actual, mapping, mins).visit(body)
    return rewritten


def _region_text(buffer: Buffer, region: Sequence[Range]) -> str:
    return f"{buffer.name}[{', '.join([f'{r.min} : {r.min} + {r.extent}' for r in region])}]"


class _Layout:
    """Finds the values of the variables in which a placeholder's layout is given."""

    def __init__(
        self,
        placeholder: Buffer,
        actual: Buffer,
        region: Sequence[Range],
        bounds: Sequence[Range] | None,
        aligns: Aligns,
    ) -> None:
        self.placeholder, self.actual, self.region = placeholder, actual, region
        self.analyzer = Analyzer()
        self.mapping: dict[Var, PrimExpr] = {placeholder.data: actual.data}
        extents = actual.shape if bounds is None else [domain.extent for domain in bounds]
        self.strides = list(actual.strides) or compact_strides(extents, aligns)
        self.offset = actual.elem_offset
        for position, (domain, stride) in enumerate(zip(region, self.strides, strict=True)):
            # memory starts at the first element that is kept
            start = domain.min
            if bounds is not None:
                start = tir_op.subtract(start, bounds[position].min)
            self.offset = tir_op.add(self.offset, tir_op.multiply(start, stride))
        self.offset = self.analyzer.simplify(self.offset)

    def values(self) -> dict[Var, PrimExpr]:
        """The values, after a check of what is declared as constant."""
        placeholder, lead = self.placeholder, len(self.region) - len(self.placeholder.shape)
        domains, strides = self.region[lead:], self.strides[lead:]
        if placeholder.scope() != self.actual.scope():
            self._reject("scope", placeholder.scope(), self.actual.scope())
        for dim, domain in zip(placeholder.shape, domains, strict=True):
            self._match("shape", dim, domain.extent)
        self._match("offset", placeholder.elem_offset, self.offset)
        declared = placeholder.strides or compact_strides(placeholder.shape)
        for formal, stride, domain in zip(declared, strides, domains, strict=True):
            if is_one(domain.extent) and not isinstance(formal, Var):
                continue  # nothing moves along this dimension
            self._match("strides", formal, stride)
        self._check_offset_factor()
        return self.mapping

    def _match(self, what: str, formal: PrimExpr, value: PrimExpr) -> None:
        if isinstance(formal, Var) and formal not in self.mapping:
            self.mapping[formal] = value
            return
        expected = substitute(formal, self.mapping)
        if not self.analyzer.can_prove_equal(expected, value):
            self._reject(what, formal, value)

    def _reject(self, what: str, formal: object, value: object) -> None:
        raise LoweringError(
            f"buffer {self.placeholder.name} requires {what} {formal}, got {value} "
            f"for {_region_text(self.actual, self.region)}",
            hint="declare the buffer with variables as strides and with an offset_factor",
        )

    def _check_offset_factor(self) -> None:
        factor = self.placeholder.offset_factor
        if factor > 1:
            rest = self.analyzer.simplify(tir_op.floormod(self.offset, factor))
            if not (isinstance(rest, IntImm) and rest.value == 0):
                self._reject("an offset that is a multiple of", factor, self.offset)


class _PlaceholderBinder(Substituter):
    """Replaces a placeholder buffer, and the variables of its layout, by an actual buffer."""

    def __init__(
        self,
        placeholder: Buffer,
        actual: Buffer,
        mapping: Mapping[Var, PrimExpr],
        mins: Sequence[PrimExpr],
    ) -> None:
        super().__init__(mapping)
        self.placeholder, self.actual, self.mins = placeholder, actual, mins

    def map_buffer(self, buffer: Buffer) -> Buffer:
        return self.actual if buffer is self.placeholder else super().map_buffer(buffer)

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        shifted: PrimExpr = self._shifted(load, super().visit_buffer_load(load))
        return shifted

    def visit_buffer_store(self, node: BufferStore) -> Stmt:
        shifted: Stmt = self._shifted(node, super().visit_buffer_store(node))
        return shifted

    def _shifted(self, before: BufferLoad | BufferStore, access: Any) -> Any:
        if before.buffer is not self.placeholder:
            return access
        lead = len(self.mins) - len(access.indices)
        own = zip(access.indices, self.mins[lead:], strict=True)
        return access.replace(
            indices=(*self.mins[:lead], *[tir_op.add(low, index) for index, low in own])
        )


def compact_strides(shape: Sequence[PrimExpr], aligns: Aligns | None = None) -> list[PrimExpr]:
    """The strides of an array without gaps, but for those of aligned dimensions."""
    strides: list[PrimExpr] = []
    step: PrimExpr = const(1, shape[-1].dtype if shape else "int32")
    for axis in reversed(range(len(shape))):
        if aligns and axis in aligns and axis < len(shape) - 1:
            factor, offset = aligns[axis]
            rest = tir_op.floormod(tir_op.subtract(factor + offset, step), factor)
            step = tir_op.add(step, rest)
        strides.append(step)
        step = tir_op.multiply(shape[axis], step)
    return strides[::-1]
