"""What is being built: nested suites of statements, and the constructs that hold state for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tvm.support import Scoped
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IterVar, PrimExprWithOp, Range, Var
from tvm.tir.stmt import (
    NO_OP,
    BufferRegion,
    Evaluate,
    MatchBufferRegion,
    SeqStmt,
    Stmt,
)

Item = Stmt | Callable[[Stmt], Stmt]
F = TypeVar("F", bound="Frame")


class Frame:
    """A construct that encloses statements.

    ``enter`` gives the value that ``with ... as x`` or ``x = ...`` binds, ``close`` the statement
    around a body.
    """

    def __init__(self, close: Callable[[Stmt], Stmt], value: Any = None) -> None:
        self._close = close
        self.value = value

    def enter(self, builder: Builder) -> Any:
        """Called before the body is read."""
        return self.value

    def close(self, body: Stmt) -> Stmt | None:
        """The statement with its body; None if it went elsewhere."""
        return self._close(body)

    def leave(self, builder: Builder) -> None:
        """Called after the body was read."""


class LoopFrame(Frame):
    """One or more nested loops over ``variables``."""

    def __init__(
        self,
        variables: Sequence[Var],
        ranges: Sequence[Range],
        close: Callable[[Sequence[Var], Stmt], Stmt],
    ) -> None:
        self.variables = list(variables)
        self.ranges = ranges
        self._make = close

    def enter(self, builder: Builder) -> Any:
        for var, dom in zip(self.variables, self.ranges, strict=True):
            builder.loops[var] = dom
        return self.variables

    def close(self, body: Stmt) -> Stmt:
        return self._make(self.variables, body)


class BlockFrame(Frame):
    """A block, and what its first lines say about it."""

    def __init__(self, name: str, no_realize: bool) -> None:
        self.name = name
        self.no_realize = no_realize
        self.iter_vars: list[IterVar] = []
        self.iter_values: list[Any] = []
        self.reads: list[BufferRegion] | None = None
        self.writes: list[BufferRegion] | None = None
        self.predicate: Any = None
        self.annotations: dict[str, Any] = {}
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[MatchBufferRegion] = []
        self.init: Stmt | None = None

    def enter(self, builder: Builder) -> Any:
        builder.blocks.append(self)
        return None

    def leave(self, builder: Builder) -> None:
        builder.blocks.pop()

    def close(self, body: Stmt) -> Stmt:
        return finish_block(self, body)


class InitFrame(Frame):
    """The initialisation of the block around it."""

    def __init__(self) -> None:
        self.block: BlockFrame | None = None

    def enter(self, builder: Builder) -> Any:
        self.block = builder.block("T.init")
        return None

    def close(self, body: Stmt) -> None:
        assert self.block is not None
        if self.block.init is not None:
            raise ValueError("a block requires at most one T.init, got a second one")
        self.block.init = body


class FunctionState:
    """The function that is being built."""

    def __init__(self) -> None:
        self.params: list[Var] = []
        self.buffer_map: dict[Var, Buffer] = {}
        self.attrs: dict[str, Any] = {}
        self.alloc_buffers: list[Buffer] = []
        self.block_annotations: dict[str, Any] = {}


class Builder:
    """The suites that are open, from the function's body inwards."""

    def __init__(self) -> None:
        self.function = FunctionState()
        self.suites: list[list[Item]] = [[]]
        self.open_frames: list[list[Frame]] = [[]]
        self.blocks: list[BlockFrame] = []
        self.loops: dict[Var, Range] = {}

    def emit(self, stmt: Any) -> None:
        """Add a statement, or an expression to evaluate, to the innermost suite."""
        if isinstance(stmt, PrimExprWithOp):
            stmt = Evaluate(stmt)
        self.suites[-1].append(stmt)

    def begin(self) -> None:
        """Open a suite."""
        self.suites.append([])
        self.open_frames.append([])

    def end(self) -> Stmt:
        """Close the innermost suite, and the constructs that last to its end."""
        items, frames = self.suites.pop(), self.open_frames.pop()
        for frame in reversed(frames):
            frame.leave(self)
        statements: list[Stmt] = []
        for item in reversed(items):
            if isinstance(item, Stmt):
                statements.append(item)
            else:
                statements = [item(_together(statements))]
        return _together(statements)

    def open(self, frame: Frame) -> Any:
        """Let a construct hold for the rest of the innermost suite."""
        value = frame.enter(self)
        self.open_frames[-1].append(frame)
        self.suites[-1].append(frame.close)  # type: ignore[arg-type]
        return value

    def block(self, what: str) -> BlockFrame:
        """The innermost block."""
        if not self.blocks:
            raise ValueError(f"{what} requires a block around it: with T.block(...)")
        return self.blocks[-1]


def _together(backwards: list[Stmt]) -> Stmt:
    if len(backwards) == 1:
        return backwards[0]
    flat: list[Stmt] = []
    for stmt in reversed(backwards):
        if type(stmt) is SeqStmt:
            flat.extend(stmt.seq)
        else:
            flat.append(stmt)
    return SeqStmt(tuple(flat)) if flat else NO_OP


_CURRENT: Scoped[Builder] = Scoped("tvm_script_builder")
building = _CURRENT.scope


def current_builder(what: str = "this") -> Builder:
    """The builder of the function that is being parsed."""
    builder = _CURRENT.current()
    if builder is None:
        raise RuntimeError(
            f"{what} requires a function that is being parsed: use it in T.prim_func"
        )
    return builder


# parts of blocks that are completed once the whole function is known
from .complete import finish_block  # noqa: E402
