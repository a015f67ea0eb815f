"""References to loops and blocks that stay valid while a program is scheduled, and the dependencies of blocks.

A `StmtSRef` is a node of a tree that mirrors the loops and blocks of a function. Rewriting the function
changes what the reference points to, not the reference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from tvm.runtime.object import Object

from .buffer import Buffer
from .stmt import Block, BufferRegion, For


class StmtSRef(Object):
    """A reference to a loop or a block of a function that is being scheduled.

    Attributes
    ----------
    stmt : Block or For or None
        What it refers to; None once that has been removed.
    parent : StmtSRef or None
        The innermost loop or block around it.
    seq_index : int
        The position among the statements directly inside the parent; -1 where there is one alone.
    """

    __slots__ = ("parent", "seq_index", "stmt")

    def __init__(
        self, stmt: Block | For | None, parent: StmtSRef | None = None, seq_index: int = -1
    ) -> None:
        self.stmt = stmt
        self.parent = parent
        self.seq_index = seq_index

    @staticmethod
    def inline_mark() -> StmtSRef:
        """The place of a block that is computed where it is used."""
        return _INLINE

    @staticmethod
    def root_mark() -> StmtSRef:
        """The place of a block that is computed outside of all loops."""
        return _ROOT

    @property
    def block(self) -> Block:
        """The block it refers to."""
        assert isinstance(self.stmt, Block), f"a reference to {type(self.stmt).__name__}"
        return self.stmt

    @property
    def loop(self) -> For:
        """The loop it refers to."""
        assert isinstance(self.stmt, For), f"a reference to {type(self.stmt).__name__}"
        return self.stmt

    @property
    def is_block(self) -> bool:
        """Whether it refers to a block."""
        return type(self.stmt) is Block

    def ancestors(self) -> Iterator[StmtSRef]:
        """The loops and blocks around it, from the innermost to the root."""
        parent = self.parent
        while parent is not None:
            yield parent
            parent = parent.parent

    def is_inside(self, other: StmtSRef) -> bool:
        """Whether the other one is among those around it, or is it itself."""
        return self is other or any([above is other for above in self.ancestors()])


_INLINE = StmtSRef(None)
_ROOT = StmtSRef(None)


class DepKind(IntEnum):
    """Why a block has to run after another one."""

    RAW = 0
    WAW = 1
    WAR = 2
    OPAQUE = 3


class Dependency(Object):
    """Block ``dst`` has to run after block ``src``."""

    __slots__ = ("dst", "kind", "src")

    def __init__(self, src: StmtSRef, dst: StmtSRef, kind: DepKind) -> None:
        self.src = src
        self.dst = dst
        self.kind = kind


class BlockScope(Object):
    """The blocks directly inside a block, and what they depend on.

    Parameters
    ----------
    child_block_srefs : list of StmtSRef
        The blocks, in the order of execution.
    undeclared : dict of StmtSRef to list of BufferRegion, optional
        What blocks read beside the regions that they declare.
    """

    def __init__(
        self,
        child_block_srefs: Iterable[StmtSRef],
        undeclared: Mapping[StmtSRef, Sequence[BufferRegion]] | None = None,
    ) -> None:
        self.children = tuple(child_block_srefs)
        self.undeclared = dict(undeclared or {})
        self.buffer_writers: dict[Buffer, list[StmtSRef]] = {}
        self.buffer_readers: dict[Buffer, list[StmtSRef]] = {}
        self.src2deps: dict[StmtSRef, list[Dependency]] = {}
        self.dst2deps: dict[StmtSRef, list[Dependency]] = {}
        for child in self.children:
            self._add(child)

    def reads_of(self, child: StmtSRef) -> tuple[BufferRegion, ...]:
        """What a block reads: the regions that it declares, and others that are known."""
        return (*child.block.reads, *self.undeclared.get(child, ()))

    def get_deps_by_src(self, block: StmtSRef) -> list[Dependency]:
        """The dependencies of later blocks on this one."""
        return self.src2deps.get(block, [])

    def get_deps_by_dst(self, block: StmtSRef) -> list[Dependency]:
        """The dependencies of this block on earlier ones."""
        return self.dst2deps.get(block, [])

    def producers(self, block: StmtSRef) -> list[StmtSRef]:
        """The blocks whose results the block reads or writes over."""
        return self._ends(self.get_deps_by_dst(block), "src")

    def consumers(self, block: StmtSRef) -> list[StmtSRef]:
        """The blocks that read the block's results or write over them."""
        return self._ends(self.get_deps_by_src(block), "dst")

    @staticmethod
    def _ends(dependencies: list[Dependency], end: str) -> list[StmtSRef]:
        kinds = (DepKind.RAW, DepKind.WAW)
        return list(dict.fromkeys([getattr(d, end) for d in dependencies if d.kind in kinds]))

    def _add(self, child: StmtSRef) -> None:
        block = child.block
        reads = list(dict.fromkeys([region.buffer for region in self.reads_of(child)]))
        writes = list(dict.fromkeys([region.buffer for region in block.writes]))
        for buffer in reads:
            self._depend(self.buffer_writers.get(buffer, ()), child, DepKind.RAW)
        for buffer in writes:
            self._depend(self.buffer_writers.get(buffer, ()), child, DepKind.WAW)
        for buffer in writes:
            self._depend(self.buffer_readers.get(buffer, ()), child, DepKind.WAR)
        for buffer in reads:
            self.buffer_readers.setdefault(buffer, []).append(child)
        for buffer in writes:
            self.buffer_writers.setdefault(buffer, []).append(child)

    def _depend(self, sources: Iterable[StmtSRef], child: StmtSRef, kind: DepKind) -> None:
        for source in sources:
            found = Dependency(source, child, kind)
            self.src2deps.setdefault(source, []).append(found)
            self.dst2deps.setdefault(child, []).append(found)
