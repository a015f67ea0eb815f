"""A module that is being scheduled, the tree of references into it, and what is known of its blocks.

Replacing a statement copies the path to the function and nothing beside it. References outside of what is
replaced stay; inside, those whose statement is used again, whose loop variable is used again, or whose
block is said to be used again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import NamedTuple

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.expr import GlobalVar
from tvm.ir.module import IRModule
from tvm.runtime.object import Object
from tvm.tir.analysis.verify_well_formed import scope_problems
from tvm.tir.block_scope import BlockScope, StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, For, SeqStmt, Stmt

from .analyses.access import undeclared_reads
from .analyses.bindings import is_affine_binding
from .analyses.cover import RegionCover
from .tree import exchanged, nodes_below, realize_in


class ScheduleDebugMask(IntEnum):
    """What is verified after each primitive."""

    VERIFY_SREF_TREE = 1
    VERIFY_CACHED_FLAGS = 2


class CachedFlags(NamedTuple):
    """What is known of a block.

    Attributes
    ----------
    affine_binding : bool
        The values of its iteration variables are splits and fusions of the loops around it.
    region_cover : bool
        What it reads was written completely by the blocks before it.
    stage_pipeline : bool
        Its inner blocks depend on each other by their results alone.
    """

    affine_binding: bool
    region_cover: bool
    stage_pipeline: bool


def as_debug_mask(value: str | int) -> int:
    """``"all"``, ``"none"`` or flags of :class:`ScheduleDebugMask` as flags."""
    if isinstance(value, str):
        if value not in ("all", "none"):
            raise RuntimeValueError(
                f"debug_mask requires 'all', 'none' or an integer, got {value!r}"
            )
        return -1 if value == "all" else 0
    if not isinstance(value, int):
        raise RuntimeTypeError(
            f"debug_mask requires a text or an integer, got {type(value).__name__}"
        )
    return int(value)


class ScheduleState(Object):
    """The program that is scheduled and the references into it.

    Parameters
    ----------
    mod : IRModule or PrimFunc
        The program.
    debug_mask : int or str
        Whether to verify after each primitive: ``"all"``, ``"none"`` or flags of :class:`ScheduleDebugMask`.
    enable_check : bool
        Whether primitives check what they require.
    """

    def __init__(
        self,
        mod: IRModule | PrimFunc,
        *,
        debug_mask: str | int = "none",
        enable_check: bool = True,
    ) -> None:
        if isinstance(mod, PrimFunc):
            mod = IRModule({"main": mod})
        if not isinstance(mod, IRModule):
            raise RuntimeTypeError(
                f"ScheduleState requires an IRModule or a PrimFunc, got {type(mod).__name__}"
            )
        self.mod = mod
        self.debug_mask = as_debug_mask(debug_mask)
        self.enable_check = bool(enable_check)
        self._srefs: dict[Stmt, StmtSRef] = {}
        self._functions: dict[StmtSRef, GlobalVar] = {}
        self._scopes: dict[StmtSRef, tuple[Block, BlockScope]] = {}
        self._affine: dict[StmtSRef, tuple[tuple[Stmt, ...], bool]] = {}
        self._cover = RegionCover(self)
        for gvar, func in mod.functions.items():
            if isinstance(func, PrimFunc) and isinstance(func.body, BlockRealize):
                root = StmtSRef(func.body.block)
                self._functions[root] = gvar
                self._srefs[func.body.block] = root
                self._add_below(root)

    def copy(self) -> tuple[ScheduleState, dict[StmtSRef, StmtSRef]]:
        """A state of its own, and its references by those of this one."""
        other = ScheduleState(self.mod, debug_mask=self.debug_mask, enable_check=self.enable_check)
        return other, {sref: other._srefs[stmt] for stmt, sref in self._srefs.items()}

    # ---- questions

    def get_sref(self, stmt: Block | For) -> StmtSRef | None:
        """The reference to a loop or a block of the program; None if it is not part of it."""
        return self._srefs.get(stmt)

    def sref_of(self, stmt: Block | For) -> StmtSRef:
        """The reference to a loop or a block that is part of the program."""
        return self._srefs[stmt]

    def function_of(self, root: StmtSRef) -> GlobalVar:
        """The name of the function that a root block is the body of."""
        return self._functions[root]

    def root_of_function(self, gvar: GlobalVar) -> StmtSRef | None:
        """The root block of a function; None if it has none."""
        for root, function in self._functions.items():
            if function is gvar:
                return root
        return None

    def realize_of(self, block: StmtSRef) -> BlockRealize:
        """The realisation of a block."""
        if block.parent is None:
            body = self.mod.functions[self._functions[block]].body  # type: ignore[attr-defined]
            assert isinstance(body, BlockRealize)
            return body
        parent = block.parent.stmt
        assert parent is not None
        return realize_in(parent.body, block.block)

    def get_block_scope(self, block_sref: StmtSRef) -> BlockScope:
        """The blocks directly inside a block, and what they depend on."""
        block = block_sref.block
        known = self._scopes.get(block_sref)
        if known is None or known[0] is not block:
            children = self.child_blocks(block_sref)
            scope = BlockScope(children, undeclared_reads(block, children))
            known = self._scopes[block_sref] = (block, scope)
        return known[1]

    def child_blocks(self, sref: StmtSRef) -> list[StmtSRef]:
        """The blocks inside a loop or a block, those inside of others left out."""
        assert sref.stmt is not None
        found: list[StmtSRef] = []
        pending: list[Stmt] = [sref.stmt]
        while pending:
            stmt = pending.pop()
            below = [node for node, _ in nodes_below(stmt)]
            for node in reversed(below):
                pending.append(node)
            while pending and isinstance(pending[-1], Block):
                found.append(self._srefs[pending.pop()])
        return found

    def is_affine(self, block: StmtSRef) -> bool:
        """Whether the values of a block's variables are splits and fusions of the loops around it."""
        if block.parent is None:
            return True
        realize = self.realize_of(block)
        key: list[Stmt] = [realize]
        for above in block.ancestors():
            if above.is_block:
                break
            key.append(above.loop)
        known = self._affine.get(block)
        # loops change when something else inside them does: what counts are their ranges
        if known is not None and _same_domain(known[0], key):
            return known[1]
        found = is_affine_binding(realize, [loop for loop in key[1:] if isinstance(loop, For)])
        self._affine[block] = (tuple(key), found)
        return found

    def is_covered(self, block: StmtSRef) -> bool:
        """Whether all that a block reads has been written by the blocks before it."""
        return block.parent is None or self._cover.holds(block)

    def is_written_before(self, block: StmtSRef, buffer: Buffer, writer: StmtSRef) -> bool:
        """Whether all that a block reads of a buffer was written before it by one other block."""
        return self._cover.is_written(block, buffer, [writer])

    def is_stage_pipeline(self, scope: StmtSRef) -> bool:
        """Whether the blocks in a scope depend on each other by their complete results alone."""
        return self._cover.is_stage_pipeline(scope)

    def _get_cached_flags(self, block_sref: StmtSRef) -> CachedFlags:
        return CachedFlags(
            self.is_affine(block_sref),
            self.is_covered(block_sref),
            self.is_stage_pipeline(block_sref),
        )

    # ---- changes

    def replace(
        self,
        src_sref: StmtSRef,
        tgt_stmt: Block | For | BlockRealize,
        block_sref_reuse: Mapping[Block, Block] | None = None,
    ) -> None:
        """Put a statement into the place of a loop or block.

        Parameters
        ----------
        src_sref : StmtSRef
            What is replaced.
        tgt_stmt : Block, For or BlockRealize
            What comes into its place: a block for a block, a loop or the realisation of a block for a loop.
        block_sref_reuse : dict of Block to Block, optional
            The new blocks by the old ones that references to are to stay valid for.
        """
        old = src_sref.stmt
        assert old is not None
        if tgt_stmt is old:
            return
        if isinstance(old, Block) is not isinstance(tgt_stmt, Block):
            if isinstance(old, Block) or not isinstance(tgt_stmt, (For, BlockRealize)):
                raise RuntimeTypeError(
                    f"replace requires a statement that fits into the place of {type(old).__name__}, "
                    f"got {type(tgt_stmt).__name__}"
                )
        parent, position = src_sref.parent, src_sref.seq_index
        node: For | Block = tgt_stmt.block if isinstance(tgt_stmt, BlockRealize) else tgt_stmt
        self._exchange_references(old, node, parent, position, dict(block_sref_reuse or {}))
        if parent is None:
            assert isinstance(tgt_stmt, Block)
            self._functions[self._srefs[node]] = self._functions.pop(src_sref)
            self._set_root(self._srefs[node], tgt_stmt)
            return
        self._replace_in_ancestors(parent, old, tgt_stmt)

    def replace_body(
        self, sref: StmtSRef, body: Stmt, reuse: Mapping[Block, Block] | None = None
    ) -> None:
        """Give a loop or a block another body."""
        mapping = dict(reuse or {})
        if sref.is_block:
            new = sref.block.replace(body=body)
            self.replace(sref, new, {**mapping, sref.block: new})
        else:
            self.replace(sref, sref.loop.replace(body=body), mapping)

    def replace_realize(
        self, block: StmtSRef, new: Stmt, reuse: Mapping[Block, Block] | None = None
    ) -> None:
        """Put a statement into the place of the realisation of a block."""
        parent = block.parent
        assert parent is not None and parent.stmt is not None
        realize = self.realize_of(block)
        self.replace_body(parent, exchanged(parent.stmt.body, realize, new), reuse)

    def _replace_in_ancestors(self, parent: StmtSRef, old: Stmt, new: Stmt) -> None:
        at: StmtSRef | None = parent
        while at is not None:
            stmt: Block | For | None = at.stmt
            assert stmt is not None
            changed = stmt.replace(body=exchanged(stmt.body, old, new))
            del self._srefs[stmt]
            self._srefs[changed] = at
            at.stmt = changed
            if at.parent is None:
                assert isinstance(changed, Block)
                self._set_root(at, changed)
            old, new, at = stmt, changed, at.parent
        if type(_body_of(parent)) is SeqStmt:
            self._renumber(parent)

    def _renumber(self, parent: StmtSRef) -> None:
        assert parent.stmt is not None
        for node, position in nodes_below(parent.stmt):
            self._srefs[node].seq_index = position

    def _set_root(self, root: StmtSRef, block: Block) -> None:
        gvar = self._functions[root]
        func = self.mod.functions[gvar]
        assert isinstance(func, PrimFunc) and isinstance(func.body, BlockRealize)
        new = func.replace(body=func.body.replace(block=block))
        self.mod = self.mod.with_functions({**self.mod.functions, gvar: new})

    def _exchange_references(
        self,
        old: For | Block,
        new: For | Block,
        parent: StmtSRef | None,
        position: int,
        reuse: dict[Block, Block],
    ) -> None:
        kept: dict[Stmt, None] = {}
        fresh: list[tuple[For | Block, StmtSRef | None, int]] = []
        self._collect_fresh(new, kept)
        loops: dict[Var, StmtSRef] = {}
        blocks: dict[Block, StmtSRef] = {}
        removed = self._remove_old(old, kept, reuse, loops, blocks)
        fresh.append((new, parent, position))
        while fresh:
            node, above, at = fresh.pop()
            sref = self._srefs.get(node) if node in kept else None
            if sref is not None:
                sref.parent, sref.seq_index = above, at
                continue
            found = (
                loops.pop(node.loop_var, None) if isinstance(node, For) else blocks.pop(node, None)
            )
            sref = StmtSRef(node) if found is None else found
            removed.pop(sref, None)
            sref.stmt, sref.parent, sref.seq_index = node, above, at
            self._srefs[node] = sref
            fresh += [(below, sref, i) for below, i in nodes_below(node)]
        for sref in removed:
            sref.stmt = None
            self._scopes.pop(sref, None)
            self._affine.pop(sref, None)

    def _collect_fresh(self, new: For | Block, kept: dict[Stmt, None]) -> None:
        """Note the statements of the new tree that are part of the program already."""
        pending: list[For | Block] = [new]
        while pending:
            node = pending.pop()
            if node in self._srefs:
                kept[node] = None
            else:
                pending += [below for below, _ in nodes_below(node)]

    def _remove_old(
        self,
        old: For | Block,
        kept: dict[Stmt, None],
        reuse: dict[Block, Block],
        loops: dict[Var, StmtSRef],
        blocks: dict[Block, StmtSRef],
    ) -> dict[StmtSRef, None]:
        """Forget the old tree but what is kept; what may be used again by loop variable or block."""
        removed: dict[StmtSRef, None] = {}
        pending: list[For | Block] = [old]
        while pending:
            node = pending.pop()
            if node in kept:
                continue
            sref = self._srefs.pop(node)
            removed[sref] = None
            if isinstance(node, For):
                loops[node.loop_var] = sref
            elif node in reuse:
                blocks[reuse[node]] = sref
            pending += [below for below, _ in nodes_below(node)]
        return removed

    def _add_below(self, sref: StmtSRef) -> None:
        pending = [sref]
        while pending:
            above = pending.pop()
            assert above.stmt is not None
            for node, position in nodes_below(above.stmt):
                below = self._srefs[node] = StmtSRef(node, above, position)
                pending.append(below)

    def snapshot(self) -> Callable[[], None]:
        """What brings the state back to what it is now."""
        mod, functions, srefs = self.mod, dict(self._functions), dict(self._srefs)
        places = [(sref, sref.parent, sref.seq_index) for sref in srefs.values()]

        def restore() -> None:
            self.mod, self._functions, self._srefs = mod, functions, srefs
            for stmt, (sref, parent, position) in zip(srefs, places, strict=True):
                assert isinstance(stmt, (Block, For))
                sref.stmt, sref.parent, sref.seq_index = stmt, parent, position

        return restore

    # ---- verification

    def debug_verify(self) -> None:
        """Check what ``debug_mask`` asks for: the tree of references, the scopes of variables."""
        if self.debug_mask & ScheduleDebugMask.VERIFY_SREF_TREE:
            self._verify_tree()

    def _verify_tree(self) -> None:
        count = 0
        for root, gvar in self._functions.items():
            func = self.mod.functions[gvar]
            assert isinstance(func, PrimFunc) and isinstance(func.body, BlockRealize)
            assert func.body.block is root.stmt, "the root reference points to the function's body"
            problems = [p for p in scope_problems(func) if p.startswith("variable")]
            assert not problems, f"the program is well formed: {problems[0]}"
            pending = [root]
            while pending:
                sref = pending.pop()
                count += 1
                assert sref.stmt is not None
                for node, position in nodes_below(sref.stmt):
                    below = self._srefs.get(node)
                    assert below is not None, "each loop and block has a reference"
                    assert below.stmt is node and below.parent is sref
                    assert below.seq_index == position, "positions are up to date"
                    pending.append(below)
        assert count == len(self._srefs), "references point into the program"


def _body_of(sref: StmtSRef) -> Stmt:
    assert sref.stmt is not None
    return sref.stmt.body


def _same_domain(known: tuple[Stmt, ...], key: list[Stmt]) -> bool:
    if len(known) != len(key):
        return False
    for a, b in zip(known, key, strict=True):
        if a is b:
            continue
        if isinstance(a, BlockRealize) and isinstance(b, BlockRealize):
            if a.iter_values is not b.iter_values or a.predicate is not b.predicate:
                return False
            if a.block.iter_vars is not b.block.iter_vars:
                return False
        elif isinstance(a, For) and isinstance(b, For):
            if a.loop_var is not b.loop_var or a.min is not b.min or a.extent is not b.extent:
                return False
        else:
            return False
    return True
