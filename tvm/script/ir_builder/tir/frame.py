"""The frames of the loop level: each makes one statement around those inside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tvm.ir.expr import PrimExpr
from tvm.ir.type import Type
from tvm.tir import stmt as s
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IntImm, IterVar, Range, Var, as_expr, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import NO_OP, BufferRegion, SeqStmt, Stmt, stmt_list

from ..base import IRBuilder, IRBuilderFrame
from ..ir.frame import IRModuleFrame
from ..ir.ir import decl_function, def_function
from .complete import DETECT, complete

F = TypeVar("F", bound="TIRFrame")


def add_to_parent(stmt: Stmt) -> None:
    """Hand a statement to the innermost frame, or to the builder."""
    builder = IRBuilder.current()
    if not builder.frames:
        builder.set_result(stmt)
        return
    frame = builder.frames[-1]
    if not isinstance(frame, TIRFrame):
        raise TypeError(
            f"a statement requires a frame of TIR around it, got {type(frame).__name__}"
        )
    frame.stmts.append(stmt)


class TIRFrame(IRBuilderFrame):
    """Collects statements."""

    def __init__(self) -> None:
        super().__init__()
        self.stmts: list[Stmt] = []

    def __enter__(self) -> Any:
        super().__enter__()
        return self.value()

    def value(self) -> Any:
        """What the frame gives to those inside it."""
        return None

    def body(self) -> Stmt:
        """The statements as one."""
        if len(self.stmts) == 1:
            return self.stmts[0]
        flat = [inner for stmt in self.stmts for inner in stmt_list(stmt)]
        return SeqStmt(tuple(flat)) if flat else NO_OP

    def statement(self) -> Stmt:
        """The statement that the frame makes."""
        raise NotImplementedError

    def finish(self) -> None:
        add_to_parent(self.statement())


class PrimFuncFrame(TIRFrame):
    """A function."""

    def __init__(self, is_private: bool = False) -> None:
        super().__init__()
        self.name: str | None = None
        self.args: list[Var] = []
        self.is_private = is_private
        self.ret_type: Type | None = None
        self.buffer_map: dict[Var, Buffer] = {}
        self.attrs: dict[str, Any] = {}
        self.env_threads: dict[Var, IterVar] = {}
        self.root_alloc_buffers: list[Buffer] = []

    def value(self) -> PrimFuncFrame:
        return self

    def finish(self) -> None:
        attrs = dict(self.attrs)
        if not self.is_private and self.name is not None and "global_symbol" not in attrs:
            attrs = {"global_symbol": self.name, **attrs}
        func = PrimFunc(self.args, self.body(), self.ret_type, self.buffer_map, attrs)
        func = complete(func, self.root_alloc_buffers)
        builder = IRBuilder.current()
        module = builder.find_frame(IRModuleFrame)
        if module is None:
            builder.set_result(func)
            return
        if self.name is None:
            raise ValueError("a function of a module requires a name: T.func_name(...)")
        if self.name not in module.global_var_map:
            decl_function(self.name, func)
        def_function(self.name, func)


class BlockFrame(TIRFrame):
    """A block, and what its first lines say about it."""

    def __init__(self, name: str, no_realize: bool) -> None:
        super().__init__()
        self.name = name
        self.no_realize = no_realize
        self.iter_vars: list[IterVar] = []
        self.iter_values: list[PrimExpr] = []
        self.reads: list[BufferRegion] | None = None
        self.writes: list[BufferRegion] | None = None
        self.predicate: PrimExpr | None = None
        self.annotations: dict[str, Any] | None = None
        self.alloc_buffers: list[Buffer] = []
        self.match_buffers: list[s.MatchBufferRegion] = []
        self.init: Stmt | None = None

    def statement(self) -> Stmt:
        notes = dict(self.annotations or {})
        if wanted := (self.reads is None) | (self.writes is None) << 1:
            notes[DETECT] = IntImm("int64", wanted)
        block = s.Block(
            self.iter_vars, self.reads or (), self.writes or (), self.name, self.body(), self.init,
            self.alloc_buffers, self.match_buffers, notes,
        )  # fmt: skip
        if not self.no_realize:
            predicate = const(True) if self.predicate is None else self.predicate
            return s.BlockRealize(tuple(self.iter_values), predicate, block)
        if self.iter_values or self.predicate is not None:
            raise ValueError(
                f"block {self.name} is not realized, so that its axes have no values and T.where "
                "does not apply"
            )
        return block


class BlockInitFrame(TIRFrame):
    """The initialisation of the block around it."""

    def __init__(self) -> None:
        super().__init__()
        self._block: BlockFrame | None = None

    def __enter__(self) -> None:
        self._block = innermost(BlockFrame, "T.init", "T.block")
        if self._block.init is not None:
            raise ValueError("a block requires at most one T.init, got a second one")
        super().__enter__()

    def finish(self) -> None:
        assert self._block is not None
        self._block.init = self.body()


class ForFrame(TIRFrame):
    """One or more nested loops."""

    def __init__(
        self,
        variables: Sequence[Var],
        doms: Sequence[Range],
        make: Callable[[Sequence[Var], Sequence[Range], Stmt], Stmt],
    ) -> None:
        super().__init__()
        self.vars = list(variables)
        self.doms = list(doms)
        self.f_make_for_loop = make

    def value(self) -> Any:
        return self.vars if len(self.vars) > 1 else self.vars[0]

    def statement(self) -> Stmt:
        return self.f_make_for_loop(self.vars, self.doms, self.body())


class AssertFrame(TIRFrame):
    """A condition that is checked first."""

    def __init__(self, condition: PrimExpr, message: PrimExpr) -> None:
        super().__init__()
        self.condition = condition
        self.message = message

    def statement(self) -> Stmt:
        return s.AssertStmt(self.condition, self.message, self.body())


class LetFrame(TIRFrame):
    """A variable with a value."""

    def __init__(self, var: Var, bound: PrimExpr) -> None:
        super().__init__()
        self.var = var
        self.bound = bound

    def value(self) -> Var:
        return self.var

    def statement(self) -> Stmt:
        return s.LetStmt(self.var, self.bound, self.body())


class RealizeFrame(TIRFrame):
    """Memory for a region of a buffer."""

    def __init__(
        self, buffer_slice: BufferRegion, storage_scope: str | None, condition: PrimExpr
    ) -> None:
        super().__init__()
        self.buffer_slice = buffer_slice
        self.storage_scope = storage_scope
        self.condition = condition

    def statement(self) -> Stmt:
        buffer, bounds = self.buffer_slice.buffer, self.buffer_slice.region
        realized = s.BufferRealize(buffer, bounds, self.condition, self.body())
        if self.storage_scope is None:
            return realized
        return s.AttrStmt(buffer, "realize_scope", as_expr(self.storage_scope), realized)


class _AllocationFrame(TIRFrame):
    """Memory that a pointer leads to."""

    def __init__(self, buffer_var: Var, make: Callable[[Var, Stmt], Stmt]) -> None:
        super().__init__()
        self.buffer_var = buffer_var
        self._make = make

    def value(self) -> Var:
        return self.buffer_var

    def statement(self) -> Stmt:
        return self._make(self.buffer_var, self.body())


class AllocateFrame(_AllocationFrame):
    """Memory."""


class AllocateConstFrame(_AllocationFrame):
    """Constant data."""


class AttrFrame(TIRFrame):
    """An attribute of the statements inside."""

    def __init__(self, node: Any, attr_key: str, attr_value: PrimExpr) -> None:
        super().__init__()
        self.node = node
        self.attr_key = attr_key
        self.attr_value = attr_value

    def statement(self) -> Stmt:
        return s.AttrStmt(self.node, self.attr_key, self.attr_value, self.body())


class WhileFrame(TIRFrame):
    """A loop with a condition."""

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__()
        self.condition = condition

    def statement(self) -> Stmt:
        return s.While(self.condition, self.body())


class IfFrame(TIRFrame):
    """A choice between a ThenFrame and an ElseFrame inside."""

    def __init__(self, condition: PrimExpr) -> None:
        super().__init__()
        self.condition = condition
        self.then_stmts: Stmt | None = None
        self.else_stmts: Stmt | None = None

    def statement(self) -> Stmt:
        if self.stmts:
            raise ValueError("T.If requires its statements in T.Then and T.Else, got others")
        if self.then_stmts is None:
            raise ValueError("T.If requires a T.Then inside it, got none")
        return s.IfThenElse(self.condition, self.then_stmts, self.else_stmts)


class _BranchFrame(TIRFrame):
    """A branch of the IfFrame around it."""

    field = ""
    word = ""

    def __init__(self) -> None:
        super().__init__()
        self._choice: IfFrame | None = None

    def __enter__(self) -> None:
        self._choice = innermost(IfFrame, f"T.{self.word}", "T.If")
        if getattr(self._choice, self.field) is not None:
            raise ValueError(f"T.If requires at most one T.{self.word}, got a second one")
        super().__enter__()

    def finish(self) -> None:
        setattr(self._choice, self.field, self.body())


class ThenFrame(_BranchFrame):
    """What runs if the condition holds."""

    field, word = "then_stmts", "Then"


class ElseFrame(_BranchFrame):
    """What runs otherwise."""

    field, word = "else_stmts", "Else"


class DeclBufferFrame(TIRFrame):
    """A view of memory; ``allocated`` says whether the memory is another's."""

    def __init__(self, buffer: Buffer, allocated: bool) -> None:
        super().__init__()
        self.buffer = buffer
        self.allocated = allocated

    def value(self) -> Buffer:
        return self.buffer

    def statement(self) -> Stmt:
        buffer = self.buffer
        declared = s.DeclBuffer(buffer, self.body())
        if self.allocated:
            return declared
        return s.Allocate(buffer.data, buffer.dtype, buffer.shape, const(True), declared)


class LaunchThreadFrame(TIRFrame):
    """A thread axis with its extent."""

    def __init__(self, iter_var: IterVar, attr_key: str, extent: PrimExpr) -> None:
        super().__init__()
        self.iter_var = iter_var
        self.attr_key = attr_key
        self.extent = extent

    def value(self) -> Var:
        return self.iter_var.var

    def statement(self) -> Stmt:
        return s.AttrStmt(self.iter_var, self.attr_key, self.extent, self.body())


def innermost(kind: type[F], what: str, around: str) -> F:
    """The innermost frame, which has to be of a class.

    Raises
    ------
    ValueError
        If it is not.
    """
    builder = IRBuilder.current()
    frame = builder.last_frame(kind)
    if frame is not None:
        return frame
    if builder.find_frame(kind) is not None:
        raise ValueError(
            f"{what} requires to stand at the top of the {around} around it, not inside other "
            "constructs there"
        )
    raise ValueError(f"{what} requires {around} around it")


def prim_func_frame(what: str) -> PrimFuncFrame:
    """The function that is being built."""
    frame = IRBuilder.current().find_frame(PrimFuncFrame)
    if frame is None:
        raise ValueError(f"{what} requires a function around it: T.prim_func")
    return frame


def loop_range(var: Any) -> Range | None:
    """The range of a loop around, by its variable."""
    for frame in reversed(IRBuilder.current().frames):
        if isinstance(frame, ForFrame):
            for known, dom in zip(frame.vars, frame.doms, strict=True):
                if known is var:
                    return dom
    return None


Annotations = Mapping[str, Any] | None
