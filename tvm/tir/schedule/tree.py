"""Where loops and blocks are among each other: around, inside, between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tvm.tir.block_scope import StmtSRef
from tvm.tir.expr import Range, Var
from tvm.tir.stmt import Block, BlockRealize, For, IfThenElse, SeqStmt, Stmt, seq


def parts_of(stmt: Stmt) -> tuple[Stmt, ...]:
    """The statements directly inside a statement; what a block does before its body is left out."""
    if isinstance(stmt, SeqStmt):
        return stmt.seq
    if isinstance(stmt, BlockRealize):
        return (stmt.block,)
    if isinstance(stmt, IfThenElse):
        branches = (stmt.then_case, stmt.else_case)
        return tuple([branch for branch in branches if branch is not None])
    body = getattr(stmt, "body", None)
    return () if body is None else (body,)


def nodes_below(stmt: Stmt) -> Iterator[tuple[For | Block, int]]:
    """The loops and blocks inside that no other one is around, with their positions in a sequence."""
    pending: list[tuple[Stmt, int]] = [(part, -1) for part in reversed(parts_of(stmt))]
    while pending:
        found, position = pending.pop()
        if isinstance(found, (For, Block)):
            yield found, position
        elif type(found) is SeqStmt:
            pending += [(part, i) for i, part in reversed([*enumerate(found.seq)])]
        else:
            at = position if type(found) is BlockRealize else -1
            pending += [(part, at) for part in reversed(parts_of(found))]


def realizes_below(stmt: Stmt) -> Iterator[BlockRealize]:
    """The realisations of blocks inside, those inside of other blocks left out."""
    pending = [stmt]
    while pending:
        found = pending.pop()
        if type(found) is BlockRealize:
            yield found
        else:
            pending += reversed(parts_of(found))


def realize_in(stmt: Stmt, block: Block) -> BlockRealize:
    """The realisation of a block that is inside a statement."""
    for realize in realizes_below(stmt):
        if realize.block is block:
            return realize
    raise AssertionError("a block is realised inside its parent")


def scope_of(sref: StmtSRef) -> StmtSRef:
    """The innermost block around a loop or a block."""
    for above in sref.ancestors():
        if above.is_block:
            return above
    raise AssertionError("the root block has no scope around it")


def root_of(sref: StmtSRef) -> StmtSRef:
    """The root block of the function."""
    while sref.parent is not None:
        sref = sref.parent
    return sref


def loops_of(sref: StmtSRef) -> list[StmtSRef]:
    """The loops around a loop or a block within its scope, the outermost first."""
    loops: list[StmtSRef] = []
    for above in sref.ancestors():
        if above.is_block:
            break
        loops.append(above)
    loops.reverse()
    return loops


def range_of(loop: For) -> Range:
    """The values of a loop's variable."""
    return Range.from_min_extent(loop.min, loop.extent)


def domain_of(loops: Sequence[StmtSRef]) -> dict[Var, Range]:
    """The ranges of loops by their variables."""
    return {sref.loop.loop_var: range_of(sref.loop) for sref in loops}


def surroundings(sref: StmtSRef) -> dict[Var, Range]:
    """The ranges of all loops and block variables that are in scope inside a loop or block."""
    found: dict[Var, Range] = {}
    for above in (sref, *sref.ancestors()):
        if above.is_block:
            found.update({a.var: a.dom for a in above.block.iter_vars if a.dom is not None})
        else:
            found[above.loop.loop_var] = range_of(above.loop)
    return found


def common_ancestor(srefs: Sequence[StmtSRef]) -> StmtSRef:
    """The innermost loop or block around all of them; a block may be itself around another one."""
    paths = [[*reversed([*sref.ancestors()]), sref] for sref in srefs]
    last = paths[0][0]
    for level in zip(*paths, strict=False):
        if any([sref is not level[0] for sref in level]):
            break
        last = level[0]
    return last


def proper_ancestor(srefs: Sequence[StmtSRef]) -> StmtSRef:
    """The innermost loop or block around all of them that is none of them."""
    parents = [sref.parent for sref in srefs if sref.parent is not None]
    return common_ancestor(parents)


def statements_inside(body: Stmt) -> tuple[Stmt, ...]:
    """The statements of a body: of a sequence, or itself alone."""
    return body.seq if isinstance(body, SeqStmt) else (body,)


def only_child(loop: For, child: Any) -> bool:
    """Whether the loop's body is that statement and nothing else."""
    body = loop.body
    return body is child or (isinstance(body, BlockRealize) and body.block is child)


def exchanged(stmt: Stmt, old: Stmt, new: Stmt) -> Stmt:
    """The statement with ``new`` in the place of ``old``; loops and blocks are not looked into."""
    if stmt is old:
        return new
    kind = type(stmt)
    if kind is For or kind is Block:
        return stmt
    if kind is SeqStmt:
        assert isinstance(stmt, SeqStmt)
        items = [exchanged(item, old, new) for item in stmt.seq]
        if all([a is b for a, b in zip(items, stmt.seq, strict=True)]):
            return stmt
        return (
            seq(items) if any([type(item) is SeqStmt for item in items]) else SeqStmt(tuple(items))
        )
    if kind is BlockRealize:
        assert isinstance(stmt, BlockRealize)
        if stmt.block is not old:
            return stmt
        assert isinstance(new, Block), "a block is replaced by a block"
        return stmt.replace(block=new)
    changes = {}
    parts = parts_of(stmt)
    for name in ("body", "then_case", "else_case"):
        part = getattr(stmt, name, None)
        if part is not None and any([part is item for item in parts]):
            if (changed := exchanged(part, old, new)) is not part:
                changes[name] = changed
    return stmt.replace(**changes) if changes else stmt
