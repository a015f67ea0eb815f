"""Combine the values of threads of a warp by shuffles, without shared memory.

tvm_thread_allreduce(1, v, True, all[0], tx)    ->    red_buf0[0] = v
                                                      mask[0] = tvm_warp_activemask()
                                                      t0[0] = tvm_warp_shuffle_down(mask[0], red_buf0[0], 16, 32, 32)
                                                      red_buf0[0] = red_buf0[0] + t0[0]
                                                      ...
                                                      red_buf0[0] = tvm_warp_shuffle(mask[0], red_buf0[0], 0, 32, 32)

More threads than a warp has combine by warps first; the first warp combines the results of all, which go through
shared memory. A shuffle is no operand of a choice: all threads have to come to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.ir.expr import PrimExpr
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype
from tvm.tir import op
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import tvm_storage_sync
from tvm.tir.expr import BufferLoad, Call, Cast, CommReducer, IntImm, Var, const, pointer_type
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import BufferStore, Evaluate, IfThenElse, Stmt, seq

MASK = as_dtype("uint32")


@dataclass(frozen=True, slots=True)
class Warps:
    """What a target's warps do."""

    size: int
    max_threads: int
    has_mask: bool = True  # shuffles name the threads that take part

    def combine(self, dtypes: Sequence[DType], count: int, groups: int) -> bool:
        """Whether shuffles combine ``count`` neighbouring threads of each of several groups."""
        if self.size <= 1 or count == 1 or not all([_is_shuffled(dtype) for dtype in dtypes]):
            return False
        if self.size % count == 0:
            return True
        if count % self.size == 0 and 0 < self.max_threads <= self.size**2:
            return True
        return groups == 1 and count <= self.size


def _is_shuffled(dtype: DType) -> bool:
    if dtype.code == "float" and dtype.bits == 16:
        return dtype.lanes <= 2
    return dtype.lanes == 1 and dtype.bits in (32, 64)


@dataclass
class WarpReduction:
    """One reduction; ``place`` is a thread's number among the ``count`` of its group."""

    reducer: CommReducer
    warps: Warps
    place: PrimExpr
    count: int
    group: PrimExpr
    groups: int
    memory: list[Buffer] = field(default_factory=list)  # to be allocated, the innermost first

    def build(self, values: Sequence[PrimExpr]) -> tuple[Stmt, list[BufferLoad]]:
        """The steps, and where each result is in the end."""
        if self.count <= self.warps.size:
            return self._in_a_warp(values)
        return self._in_warps(values)

    def _in_a_warp(self, values: Sequence[PrimExpr]) -> tuple[Stmt, list[BufferLoad]]:
        members = op.multiply(self.group, self.count)
        is_part = self.groups > 1 and self.count < self.warps.size
        steps, buffers, mask = self._tree(values, self.count, self._mask(self.count, is_part))
        # each thread has the result, so that all may store it
        for buffer in buffers:
            first = self._shuffle("tvm_warp_shuffle", mask, _only(buffer), members)
            steps.append(BufferStore(buffer, first, (0,)))
        return seq(steps), [_only(buffer) for buffer in buffers]

    def _in_warps(self, values: Sequence[PrimExpr]) -> tuple[Stmt, list[BufferLoad]]:
        size, count = self.warps.size, self.count // self.warps.size
        start = op.multiply(self.group, count)
        staging = [
            _buffer("red_buf_staging", value.dtype, count * self.groups, "shared")
            for value in values
        ]
        self.memory += staging
        steps, buffers, _ = self._tree(values, size, self._mask(size, False))
        self.memory += buffers
        warp = op.floordiv(self.place, size)
        stores = [
            BufferStore(to, _only(buffer), (op.add(warp, start),))
            for to, buffer in zip(staging, buffers, strict=True)
        ]
        steps += [IfThenElse(op.floormod(self.place, size).equal(0), seq(stores), None), _sync()]
        parts = [BufferLoad(buffer, (op.add(start, self.place),)) for buffer in staging]
        mask = self._mask(count, count < size, is_first=True)
        more, buffers, _ = self._tree(parts, count, mask, self.place < count)
        self.memory += buffers
        results = [_buffer("red_result", value.dtype, self.groups, "shared") for value in values]
        stores = [
            BufferStore(to, _only(buffer), (self.group,))
            for to, buffer in zip(results, buffers, strict=True)
        ]
        steps += [*more, IfThenElse(self.place.equal(0), seq(stores), None), _sync()]
        return seq(steps), [BufferLoad(buffer, (self.group,)) for buffer in results]

    def _tree(
        self, values: Sequence[PrimExpr], count: int, mask: PrimExpr,
        condition: PrimExpr | None = None,
    ) -> tuple[list[Stmt], list[Buffer], Buffer | None]:  # fmt: skip
        """Combine ``count`` threads with those behind them, half as far each time."""
        buffers = [_buffer(f"red_buf{k}", value.dtype) for k, value in enumerate(values)]
        others = [_buffer(f"t{k}", value.dtype) for k, value in enumerate(values)]
        loads = _stores(buffers, values)
        first = loads if condition is None else IfThenElse(condition, loads, None)
        steps: list[Stmt] = [first]
        self.memory += others
        named = None
        if self.warps.has_mask:
            named = decl_buffer((1,), MASK, "mask", data=_pointer("mask", mask.dtype, "local"))
            steps.append(BufferStore(named, mask, (0,)))
            self.memory.append(named)
        distance = 1 << max(count - 1, 1).bit_length() - 1
        while distance:
            for buffer, other in zip(buffers, others, strict=True):
                moved = self._shuffle("tvm_warp_shuffle_down", named, _only(buffer), distance)
                steps.append(BufferStore(other, moved, (0,)))
            combined = self.reducer([_only(b) for b in buffers], [_only(b) for b in others])
            stores = _stores(buffers, combined)
            if distance * 2 > count:  # those at the end have nobody behind them
                stores = IfThenElse(self.place + distance < count, stores, None)
            steps.append(stores)
            distance //= 2
        return steps, buffers, named

    def _mask(self, count: int, is_part: bool, is_first: bool = False) -> PrimExpr:
        """The threads that are here: of ``count`` of them, if these are a part of the warp."""
        here = Call(MASK, INTRINSICS["tvm_warp_activemask"], ())
        if not is_part:
            return here
        members: PrimExpr = const((1 << count) - 1, MASK)
        if not is_first:
            in_warp = self.group
            if self.groups * count > self.warps.size:
                in_warp = op.floormod(self.group, self.warps.size // count)
            start = op.multiply(const(count, MASK), Cast(MASK, in_warp))
            members = Call(MASK, INTRINSICS["shift_left"], (members, start))
        return Call(MASK, INTRINSICS["bitwise_and"], (here, members))

    def _shuffle(
        self, name: str, mask: Buffer | None, value: PrimExpr, lane: PrimExpr | int
    ) -> PrimExpr:
        width = const(self.warps.size, "int32")
        named = IntImm("int32", 0) if mask is None else _only(mask)
        where = lane if isinstance(lane, PrimExpr) else const(lane, "int32")
        return Call(value.dtype, INTRINSICS[name], (named, value, where, width, width))


def _only(buffer: Buffer) -> BufferLoad:
    return BufferLoad(buffer, (0,))


def _stores(buffers: Sequence[Buffer], values: Sequence[PrimExpr]) -> Stmt:
    return seq([
        BufferStore(buffer, value, (0,)) for buffer, value in zip(buffers, values, strict=True)
    ])  # fmt: skip


def _pointer(name: str, dtype: DType, scope: str) -> Var:
    return Var(name, pointer_type(dtype, scope))


def _buffer(name: str, dtype: DType, size: int = 1, scope: str = "local") -> Buffer:
    return decl_buffer((size,), dtype, name, data=_pointer(name, dtype, scope))


def _sync() -> Stmt:
    return Evaluate(tvm_storage_sync("shared"))
