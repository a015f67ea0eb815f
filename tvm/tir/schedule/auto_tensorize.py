"""How the variables of a block fuse into those of an intrinsic, so that it could compute the block.

C[n, h, w, c] += A[n, h + r, w + s, k] * B[r, s, k, c]    on    C[i, j] += A[i, k] * B[k, j]
gives    n, h, w, c, r, s, k -> [n * 64 + h * 8 + w, c, r * 12 + s * 4 + k]

A variable of the block belongs to that of the intrinsic which occurs in the same buffers and is of the
same kind; those that belong to none come first, as they are.
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node
from tvm.runtime.object import Object
from tvm.tir import op
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, IterVar, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt import Block, BlockRealize, BufferStore
from tvm.tir.stmt_functor import variables_of

from .random_variables import BlockRV
from .schedule import Schedule
from .tree import realizes_below


class AutoTensorizeMappingInfo(Object):
    """The ways in which a block's variables fuse into those of an intrinsic's description.

    Attributes
    ----------
    mappings : list of IndexMap
        From the block's variables.
    lhs_buffer_map : dict of Buffer to Buffer
        The description's buffers by the block's.
    rhs_buffer_indices : dict of Buffer to list of PrimExpr
        How the description accesses its buffers.
    lhs_iters, rhs_iters : list of IterVar
        The variables of the block, and of the description.
    """

    def __init__(
        self,
        mappings: list[IndexMap],
        lhs_buffer_map: dict[Buffer, Buffer],
        rhs_buffer_indices: dict[Buffer, list[PrimExpr]],
        lhs_iters: list[IterVar],
        rhs_iters: list[IterVar],
    ) -> None:
        self.mappings = mappings
        self.lhs_buffer_map = lhs_buffer_map
        self.rhs_buffer_indices = rhs_buffer_indices
        self.lhs_iters = lhs_iters
        self.rhs_iters = rhs_iters


def get_auto_tensorize_mapping_info(
    sch: Schedule, block: BlockRV, desc_func: PrimFunc
) -> AutoTensorizeMappingInfo | None:
    """How the variables of a block would fuse, for an intrinsic to compute it.

    Parameters
    ----------
    sch : Schedule
    block : BlockRV
    desc_func : PrimFunc
        The intrinsic's description.

    Returns
    -------
    AutoTensorizeMappingInfo or None
        None if the block computes something else.
    """
    mine = sch.get(block)
    assert isinstance(desc_func.body, BlockRealize), "a description is a block"
    (realize,) = realizes_below(desc_func.body.block.body)
    theirs = realize.block
    accesses = _Accesses()
    if not accesses.match(mine.body, theirs.body):
        return None
    mapping = _fused(mine, theirs, accesses)
    if mapping is None:
        return None
    indices = {buffer: [*found] for buffer, found in accesses.described.items()}
    return AutoTensorizeMappingInfo(
        [mapping], accesses.buffers, indices, [*mine.iter_vars], [*theirs.iter_vars]
    )


class _Accesses:
    """Compares two computations whose buffers are accessed at any indices."""

    def __init__(self) -> None:
        self.buffers: dict[Buffer, Buffer] = {}  # of the description, by those of the block
        self.indices: dict[Buffer, tuple[PrimExpr, ...]] = {}  # of the block's accesses
        self.described: dict[Buffer, tuple[PrimExpr, ...]] = {}

    def match(self, lhs: Any, rhs: Any) -> bool:
        """Whether a part of the block computes what a part of the description does."""
        if isinstance(lhs, BufferStore) and isinstance(rhs, BufferStore):
            return self.match(lhs.value, rhs.value) and self._match_access(lhs, rhs)
        if isinstance(lhs, BufferLoad) and isinstance(rhs, BufferLoad):
            return self._match_access(lhs, rhs)
        if type(lhs) is not type(rhs) or isinstance(lhs, Var):
            return False
        if not isinstance(lhs, Node):
            return bool(lhs == rhs)
        if getattr(lhs, "dtype", None) is not getattr(rhs, "dtype", None):
            return False
        return all([self._match_field(lhs, rhs, name) for name, _ in type(lhs).compared])

    def _match_field(self, lhs: Node, rhs: Node, name: str) -> bool:
        a, b = getattr(lhs, name), getattr(rhs, name)
        if isinstance(a, tuple):
            return len(a) == len(b) and all([self.match(x, y) for x, y in zip(a, b, strict=True)])
        return a is b or self.match(a, b)

    def _match_access(self, lhs: Any, rhs: Any) -> bool:
        known = self.buffers.get(lhs.buffer)
        if known is None:
            if lhs.buffer.dtype is not rhs.buffer.dtype or rhs.buffer in self.described:
                return False
            self.buffers[lhs.buffer] = rhs.buffer
            self.indices[lhs.buffer], self.described[rhs.buffer] = lhs.indices, rhs.indices
            return True
        return known is rhs.buffer

    def of(self, var: Var, is_described: bool) -> list[bool]:
        """In which buffers' indices, in order, a variable occurs."""
        found: Any = self.described.values() if is_described else self.indices.values()
        return [any([var in variables_of(index) for index in indices]) for indices in found]


def _fused(mine: Block, theirs: Block, accesses: _Accesses) -> IndexMap | None:
    """The map that fuses all variables of the block which belong to the same one."""
    wanted = [(accesses.of(axis.var, True), axis.iter_type) for axis in theirs.iter_vars]
    if any([wanted.index(kind) != at for at, kind in enumerate(wanted)]):
        return None  # two variables that nothing tells apart
    groups: list[list[int]] = [[] for _ in wanted]
    initial = [Var(axis.var.name, axis.var.dtype) for axis in mine.iter_vars]
    outer: list[PrimExpr] = []
    for at, axis in enumerate(mine.iter_vars):
        kind = (accesses.of(axis.var, False), axis.iter_type)
        if kind in wanted:
            groups[wanted.index(kind)].append(at)
        else:
            outer.append(initial[at])
    if not all(groups):
        return None
    fused = [_joined(mine, group, initial) for group in groups]
    return IndexMap(tuple(initial), (*outer, *fused))


def _joined(block: Block, group: list[int], initial: list[Var]) -> PrimExpr:
    value: PrimExpr = const(0, initial[group[0]].dtype)
    for at in group:
        dom = block.iter_vars[at].dom
        assert dom is not None
        value = op.add(op.multiply(value, dom.extent), initial[at])
    return value
