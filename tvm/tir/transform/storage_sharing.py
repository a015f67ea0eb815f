"""Which allocations of a thread share a piece of memory.

    A, B: float32[200]       a[200]     A, then C (int16[400]), lie in a
    C: int16[400]      ->    b[200]     B lies in b
    D: float32[200]                     D is read from A in the statement that writes it: in a

Pieces of a tagged scope, ``local.buffer`` of a special unit, are parts of one allocation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.support.dtype import DType
from tvm.tir.expr import Var, const
from tvm.tir.memory_info import memory_info
from tvm.tir.stmt import Allocate, Stmt
from tvm.tir.transform.common import TRUE
from tvm.tir.transform.in_place import is_in_place
from tvm.tir.transform.lifetimes import Lifetime, is_on_host, is_tagged

# memory may be shared by allocations whose sizes differ by this factor
MATCH_RANGE = 16


@dataclass(frozen=True)
class SharingRules:
    """What may share memory."""

    for_kernels: bool = False  # a processor's own memory is shared within one data type
    exact_types: bool = False  # all memory is


@dataclass
class Block:
    """Memory that allocations share."""

    scope: str
    bits: int | None  # if the size is constant
    owner: Lifetime  # of what lies there now
    allocs: list[Allocate] = field(default_factory=list)
    var: Var | None = None
    offset: int = 0  # in bits, of a part of memory

    @property
    def first(self) -> Allocate:
        """The allocation that the memory was made for."""
        return self.allocs[0]

    @property
    def dtype(self) -> DType:
        """The type of the memory: that of the first allocation with the most lanes."""
        best = self.first.dtype
        for alloc in self.allocs:
            if alloc.dtype.lanes > best.lanes:
                best = alloc.dtype
        return best

    def extents(self) -> tuple[PrimExpr, ...]:
        """The size of the memory, in elements of its type."""
        first = self.first
        if self.bits is None:
            return first.extents
        itself = self.first.dtype is self.dtype and _bits(first) == self.bits
        if itself and all([structural_equal(a.extents, first.extents) for a in self.allocs]):
            return first.extents
        unit = self.dtype.bits * self.dtype.lanes
        return (const(-(-self.bits // unit), "int32"),)

    def allocate(self, body: Stmt) -> Stmt:
        """The statement with the memory around it."""
        assert self.var is not None
        marks = self.first.annotations
        return Allocate(self.var, self.dtype, self.extents(), TRUE, body, annotations=marks)


def _bits(alloc: Allocate) -> int | None:
    size = alloc.constant_size()
    return None if size is None else size * alloc.dtype.bits * alloc.dtype.lanes


def share(lifetimes: Sequence[Lifetime], rules: SharingRules) -> dict[Var, Block]:
    """Give each allocation a block; a block is free again after its last use."""
    blocks: list[Block] = []
    chosen: dict[Var, Block] = {}
    for life in sorted(lifetimes, key=lambda life: life.first):
        block = _fitting(life, blocks, rules)
        if block is None:
            block = Block(life.scope, life.bits, life, var=life.alloc.buffer_var)
            blocks.append(block)
        elif block.bits is not None and life.bits is not None:
            block.bits = max(block.bits, life.bits)
        block.owner = life
        block.allocs.append(life.alloc)
        chosen[life.alloc.buffer_var] = block
    return chosen


def _fitting(life: Lifetime, blocks: Sequence[Block], rules: SharingRules) -> Block | None:
    """The block whose size is nearest; what may lie where its data is comes first."""
    if life.is_small or life.alloc.annotations:
        return None
    found = [
        block
        for block in blocks
        if block.scope == life.scope
        and not block.owner.is_small
        and not block.first.annotations
        and _may_lie_in(life, block, rules)
    ]
    return min(found, key=lambda block: _difference(life, block) or 0) if found else None


def _may_lie_in(life: Lifetime, block: Block, rules: SharingRules) -> bool:
    difference = _difference(life, block)
    if difference is None:
        return False
    in_place = takes_over(life, block.owner)
    if not (life.is_flat and block.owner.is_flat):
        same = structural_equal(life.alloc.extents, block.owner.alloc.extents)
        return in_place and same
    if not in_place and block.owner.last >= life.first:
        return False
    if all([alloc.dtype is life.alloc.dtype for alloc in block.allocs]):
        return True
    if rules.exact_types or (rules.for_kernels and is_on_host(life.scope)):
        return False
    # another type: in memory that is large enough, at whole elements
    unit = life.alloc.dtype.bits
    return (
        block.bits is not None
        and life.bits is not None
        and block.bits >= life.bits
        and block.bits % unit == 0
    )


def _difference(life: Lifetime, block: Block) -> int | None:
    """How far apart the sizes are; None if memory of the one is no good for the other."""
    if life.bits is None or block.bits is None:
        both = life.bits is None and block.bits is None
        same = both and structural_equal(life.alloc.extents, block.first.extents)
        return 0 if same and life.alloc.dtype is block.first.dtype else None
    small, large = sorted([life.bits, block.bits])
    return large - small if large <= small * MATCH_RANGE else None


def takes_over(life: Lifetime, old: Lifetime) -> bool:
    """Whether the loop or store that begins one lifetime ends the other, element by element."""
    user = life.first_user
    if user is None or user is not old.last_user or life.alloc.dtype is not old.alloc.dtype:
        return False
    return is_in_place(user, life.alloc.buffer_var, old.alloc.buffer_var)


def join_tagged(blocks: Sequence[Block]) -> list[tuple[Block, int | None]]:
    """The blocks to allocate, each with the bits that blocks of its tagged scope take together."""
    joined: dict[str, list[Block]] = {}
    result: list[tuple[Block, int | None]] = []
    for block in blocks:
        if not is_tagged(block.scope) or not block.bits:
            result.append((block, None))
        else:
            joined.setdefault(block.scope, []).append(block)
    for scope, parts in joined.items():
        result.append((parts[0], _laid_out(scope, parts)))
    order = {id(block): place for place, block in enumerate(blocks)}
    return sorted(result, key=lambda pair: order[id(pair[0])])


def _laid_out(scope: str, parts: Sequence[Block]) -> int:
    """Give parts of special memory their offsets; how many bits they take."""
    info = memory_info(scope)
    align = 32 if info is None else info.max_simd_bits
    total = 0
    for part in parts:
        assert part.bits is not None
        part.offset, part.var = total, parts[0].var
        total = -(-(total + part.bits) // align) * align
    if info is not None and total > info.max_num_bits:
        raise LoweringError(
            f"StorageRewrite requires {total} bits of memory {scope}, which has {info.max_num_bits}",
            classic=f"Allocation exceed bound of memory tag {scope}",
        )
    return total
