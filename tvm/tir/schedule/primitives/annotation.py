"""Annotations of loops and blocks."""

from __future__ import annotations

from typing import Any

from tvm.tir.block_scope import StmtSRef
from tvm.tir.stmt import Block, For

from ..errors import PrimitiveError
from ..state import ScheduleState


def annotate(state: ScheduleState, sref: StmtSRef, key: str, value: Any) -> None:
    """Add an annotation; one that is there keeps its value."""
    assert sref.stmt is not None
    if key in sref.stmt.annotations:
        return
    _with_annotations(state, sref, {**sref.stmt.annotations, key: value})


def unannotate(state: ScheduleState, sref: StmtSRef, key: str) -> None:
    """Take an annotation off."""
    stmt = sref.stmt
    assert stmt is not None
    if key not in stmt.annotations:
        raise PrimitiveError(
            "ScheduleError: The annotation key is not found",
            f"{{0}} has no annotation {key}, but {list(stmt.annotations)}",
            stmt,
        )
    rest = {name: value for name, value in stmt.annotations.items() if name != key}
    _with_annotations(state, sref, rest)


def _with_annotations(state: ScheduleState, sref: StmtSRef, annotations: dict[str, Any]) -> None:
    stmt = sref.stmt
    if isinstance(stmt, Block):
        block = Block(
            stmt.iter_vars, stmt.reads, stmt.writes, stmt.name_hint, stmt.body, stmt.init,
            stmt.alloc_buffers, stmt.match_buffers, annotations, stmt.span,
        )  # fmt: skip
        state.replace(sref, block, {stmt: block})
        return
    assert isinstance(stmt, For)
    loop = For(
        stmt.loop_var, stmt.min, stmt.extent, stmt.kind, stmt.body, stmt.thread_binding,
        annotations, stmt.span,
    )  # fmt: skip
    state.replace(sref, loop)
