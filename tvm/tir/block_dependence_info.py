"""The blocks of a module, and which of them depend on which."""

from __future__ import annotations

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.module import IRModule
from tvm.ir.visitor import Visitor
from tvm.runtime.object import Object

from .block_scope import BlockScope, StmtSRef
from .function import PrimFunc
from .stmt import Block, BlockRealize, SeqStmt


class BlockDependenceInfo(Object):
    """What the blocks of a module depend on, without a schedule.

    The parent of a reference is the block around, whatever loops are between.

    Parameters
    ----------
    mod : IRModule or PrimFunc
        The program.
    """

    def __init__(self, mod: IRModule | PrimFunc) -> None:
        if not isinstance(mod, (IRModule, PrimFunc)):
            raise RuntimeTypeError(
                f"BlockDependenceInfo requires an IRModule or a PrimFunc, got {type(mod).__name__}"
            )
        functions = mod.functions.values() if isinstance(mod, IRModule) else [mod]
        tree = _BlockTree()
        for func in functions:
            if isinstance(func, PrimFunc):
                tree.visit(func.body)
        self._srefs = tree.srefs
        self._scopes = {sref: BlockScope(inside) for sref, inside in tree.children.items()}

    def get_sref(self, block: Block) -> StmtSRef | None:
        """The reference to a block of the program; None if it is not part of it."""
        return self._srefs.get(block)

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The blocks directly inside a block, and what they depend on."""
        scope = self._scopes.get(block_sref)
        if scope is None:
            raise RuntimeValueError(
                "get_block_scope requires a reference that get_sref returned, or the parent of one, "
                f"got {block_sref}"
            )
        return scope


class _BlockTree(Visitor):
    """Collects the blocks, and those directly inside each in the order of execution."""

    def __init__(self) -> None:
        self.srefs: dict[Block, StmtSRef] = {}
        self.children: dict[StmtSRef, list[StmtSRef]] = {}
        self.parent: StmtSRef | None = None

    def visit_block(self, block: Block) -> None:
        above = self.parent
        sref = self.parent = self.srefs[block] = StmtSRef(block, above)
        self.children[sref] = []
        if above is not None:
            self.children[above].append(sref)
        self.visit_children(block)
        self.parent = above

    def visit_seq_stmt(self, stmt: SeqStmt) -> None:
        self.visit_children(stmt)
        for i, part in enumerate(stmt.seq):
            if isinstance(part, BlockRealize):
                self.srefs[part.block].seq_index = i
