"""Taking a block out of its scope, with the loops that have nothing else inside."""

from __future__ import annotations

from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.stmt import BlockRealize, IfThenElse, SeqStmt, Stmt, seq

from ..errors import PrimitiveError
from ..state import ScheduleState
from ..tree import parts_of


def body_without(state: ScheduleState, block: StmtSRef, scope: StmtSRef) -> Stmt:
    """The body of a scope without a block; rejected if nothing would be left."""
    body = _without(scope.block.body, state.realize_of(block))
    if body is None:
        raise PrimitiveError(
            "ScheduleError: Cannot remove the only leaf in the scope",
            "Block {0} is the only leaf in the scope {1}, which cannot be removed; otherwise the "
            "scope will be empty",
            block.block, scope.block,
        )  # fmt: skip
    return body


def _without(stmt: Stmt, realize: BlockRealize) -> Stmt | None:
    if stmt is realize:
        return None
    if isinstance(stmt, SeqStmt):
        items = [_without(item, realize) for item in stmt.seq]
        if all([a is b for a, b in zip(items, stmt.seq, strict=True)]):
            return stmt
        left = [item for item in items if item is not None]
        return seq(left) if left else None
    if isinstance(stmt, BlockRealize):
        return stmt
    if isinstance(stmt, IfThenElse):
        return _branches_without(stmt, realize)
    for part in parts_of(stmt):
        new = _without(part, realize)
        if new is not part:
            return None if new is None else stmt.replace(body=new)
    return stmt


def _branches_without(stmt: IfThenElse, realize: BlockRealize) -> Stmt | None:
    then = _without(stmt.then_case, realize)
    other = None if stmt.else_case is None else _without(stmt.else_case, realize)
    if then is stmt.then_case and other is stmt.else_case:
        return stmt
    if then is None:
        return None if other is None else IfThenElse(op.logical_not(stmt.condition), other)
    return stmt.replace(then_case=then, else_case=other)
