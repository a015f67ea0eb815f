"""Statements of the loop level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.expr import PrimExpr
from tvm.ir.node import Node, Shape, binder, child, ignored, leaf, reference
from tvm.ir.script_printer import Scriptable
from tvm.support.dtype import DType
from tvm.support.dtype import dtype as as_dtype

from . import op
from .access import check_access, check_predicate
from .expr import (
    BOOL,
    BufferLoad,
    ExprOp,
    IntImm,
    IterVar,
    Ramp,
    Range,
    StringImm,
    Var,
    as_expr,
    as_exprs,
    as_lanes,
    bound_value,
    int_imm,
)
from .linear import difference
from .scalable import vscale_factor

if TYPE_CHECKING:
    from tvm.ir.span import Span

    from .buffer import Buffer, DataProducer


class Stmt(Scriptable, Node):
    """A statement."""

    span: Span | None = ignored(default=None, kw_only=True)


def _condition(value: Any) -> PrimExpr:
    return as_expr(value, BOOL)


def _message(value: Any) -> PrimExpr:
    return as_expr(value)


def _ranges(value: Iterable[Any]) -> tuple[Range, ...]:
    return tuple([r if isinstance(r, Range) else Range(*r) for r in value])


# ---- bindings and checks


class LetStmt(Stmt):
    """Bind ``var`` to ``value`` in ``body``."""

    var: Var = binder("body")
    value: PrimExpr = child(convert=as_expr)
    body: Stmt

    def __init__(self, var: Var, value: Any, body: Stmt, span: Span | None = None) -> None:
        self._init(var, bound_value(var, value), body, span)


def _attr_node(value: Any) -> Any:
    """What an attribute is about: any node; texts and numbers become constants."""
    return as_expr(value) if isinstance(value, (str, int)) else value


class AttrStmt(Stmt):
    """Annotate ``body``: ``attr_key`` of ``node`` is ``value``."""

    node: Any = reference(convert=_attr_node)
    attr_key: str
    value: PrimExpr = child(convert=as_expr)
    body: Stmt


class AssertStmt(Stmt):
    """Check ``condition`` before ``body``; ``message`` tells what is wrong."""

    condition: PrimExpr = child(convert=_condition)
    message: PrimExpr = child(convert=_message)
    body: Stmt


# ---- loops


class ForKind(IntEnum):
    """How the iterations of a loop are executed."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


def _annotations(value: Any) -> dict[str, Any]:
    return {key: _annotation(item) for key, item in value.items()} if value else {}


def _annotation(value: Any) -> Any:
    """Texts stay texts, numbers become constants."""
    if isinstance(value, (str, Node)) or value is None:
        return value
    if isinstance(value, (list, tuple)):
        return tuple([_annotation(item) for item in value])
    if isinstance(value, dict):
        return _annotations(value)
    return as_expr(value)


class For(Stmt):
    """Execute ``body`` with ``loop_var`` from ``min``, ``extent`` times."""

    loop_var: Var = binder("body")
    min: PrimExpr
    extent: PrimExpr
    kind: ForKind
    body: Stmt
    thread_binding: IterVar | None = None
    annotations: dict[str, Any] = child(default=None, convert=_annotations, shape=Shape.NESTED)

    def __init__(
        self,
        loop_var: Var,
        min: Any,
        extent: Any,
        kind: int,
        body: Stmt,
        thread_binding: IterVar | None = None,
        annotations: dict[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        dtype = loop_var.dtype
        self._init(
            loop_var, as_expr(min, dtype), as_expr(extent, dtype), ForKind(kind), body,
            thread_binding, _annotations(annotations), span,
        )  # fmt: skip


class While(Stmt):
    """Execute ``body`` as long as ``condition`` holds."""

    condition: PrimExpr = child(convert=_condition)
    body: Stmt


# ---- memory


class BufferStore(Stmt):
    """``buffer[indices] = value``"""

    buffer: Buffer = reference()
    value: PrimExpr
    indices: tuple[PrimExpr, ...]
    predicate: PrimExpr | None = None

    def __init__(
        self,
        buffer: Buffer,
        value: Any,
        indices: Sequence[Any],
        predicate: PrimExpr | None = None,
        span: Span | None = None,
    ) -> None:
        positions = as_exprs(indices)
        check_access(buffer, positions)
        self._init(buffer, as_expr(value, buffer.dtype.element), positions, predicate, span)
        if predicate is not None:
            check_predicate(predicate, self.value.dtype, "store a value", "value dtype")


class BufferRealize(Stmt):
    """Provide memory for the part ``bounds`` of ``buffer`` during ``body``."""

    buffer: Buffer = reference()
    bounds: tuple[Range, ...] = child(convert=_ranges)
    condition: PrimExpr = child(convert=_condition)
    body: Stmt


class ProducerStore(Stmt):
    """``producer[indices] = value`` for a tensor that is not in memory yet."""

    producer: DataProducer = reference()
    value: PrimExpr = child(convert=as_expr)
    indices: tuple[PrimExpr, ...] = child(convert=as_exprs)


class ProducerRealize(Stmt):
    """Provide memory for the part ``bounds`` of a tensor during ``body``."""

    producer: DataProducer = reference()
    bounds: tuple[Range, ...] = child(convert=_ranges)
    condition: PrimExpr = child(convert=_condition)
    body: Stmt
    storage_scope: str = ""


class Allocate(Stmt):
    """Memory for ``extents`` elements of ``dtype`` during ``body``; ``buffer_var`` points to it."""

    buffer_var: Var = binder("body")
    dtype: DType = leaf(convert=as_dtype)
    extents: tuple[PrimExpr, ...] = child(convert=as_exprs)
    condition: PrimExpr = child(convert=_condition)
    body: Stmt
    annotations: dict[str, Any] = child(default=None, convert=_annotations, shape=Shape.NESTED)

    def __check__(self) -> None:
        _require_pointer(self, self.buffer_var)

    def constant_size(self) -> int | None:
        """The number of elements, or None if it is not constant."""
        return _constant_size(self.extents)


class AllocateConst(Stmt):
    """Constant data during ``body``: an NDArray, or its index in the module's constants."""

    buffer_var: Var = binder("body")
    dtype: DType
    extents: tuple[PrimExpr, ...]
    data: Any = leaf()
    irmod_storage_idx: PrimExpr | None
    body: Stmt
    annotations: dict[str, Any] = child(default=None, convert=_annotations, shape=Shape.NESTED)

    def __init__(
        self,
        buffer_var: Var,
        dtype: Any,
        extents: Sequence[Any],
        data_or_idx: Any,
        body: Stmt,
        annotations: dict[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        _require_pointer(self, buffer_var)
        index = as_expr(data_or_idx) if isinstance(data_or_idx, (int, PrimExpr)) else None
        data = data_or_idx if index is None else None
        self._init(
            buffer_var, as_dtype(dtype), as_exprs(extents), data, index, body,
            _annotations(annotations), span,
        )  # fmt: skip

    def constant_size(self) -> int | None:
        """The number of elements, or None if it is not constant."""
        return _constant_size(self.extents)


def _require_pointer(node: Node, var: Var) -> None:
    if not var.dtype.is_handle:
        raise RuntimeTypeError(
            f"{type(node).__name__} requires a pointer as buffer_var, got {var.dtype} {var.name}"
        )


def _constant_size(extents: Sequence[PrimExpr]) -> int | None:
    size = 1
    for extent in extents:
        if type(extent) is not IntImm:
            return None
        size *= extent.value
    return size


class DeclBuffer(Stmt):
    """A view of memory that ``body`` uses."""

    buffer: Buffer = binder("body")
    body: Stmt


class Prefetch(Stmt):
    """Bring a region of a buffer near."""

    buffer: Buffer = reference()
    bounds: tuple[Range, ...] = child(convert=_ranges)


# ---- control


def _stmts(value: Iterable[Any]) -> tuple[Stmt, ...]:
    return _joined([item if isinstance(item, Stmt) else Evaluate(item) for item in value])


def _joined(stmts: Sequence[Stmt]) -> tuple[Stmt, ...]:
    """The statements, with those of sequences among them in their place."""
    if any([type(stmt) is SeqStmt for stmt in stmts]):
        parts = [stmt.seq if isinstance(stmt, SeqStmt) else (stmt,) for stmt in stmts]
        return tuple([stmt for part in parts for stmt in part])
    return tuple(stmts)


class SeqStmt(Stmt):
    """Statements one after the other; none of them is a sequence itself."""

    seq: tuple[Stmt, ...] = child(convert=_stmts)

    @staticmethod
    def __rebuilt__(stmts: tuple[Stmt, ...], span: Span | None) -> SeqStmt:
        """What rewriting the statements gives: one of them may have become several."""
        result: SeqStmt = SeqStmt._make(_joined(stmts), span)
        return result

    def __getitem__(self, index: int) -> Stmt:
        return self.seq[index]

    def __len__(self) -> int:
        return len(self.seq)


class IfThenElse(Stmt):
    """One of two statements."""

    condition: PrimExpr = child(convert=_condition)
    then_case: Stmt
    else_case: Stmt | None = None


class Evaluate(Stmt):
    """Evaluate an expression for its effect."""

    value: PrimExpr = child(convert=as_expr)


# ---- blocks


class BufferRegion(ExprOp, Scriptable, Node):
    """A box of a buffer. As an operand it is the vector of its elements."""

    buffer: Buffer = reference()
    region: tuple[Range, ...] = child(convert=_ranges)

    __hash__ = ExprOp.__hash__

    def asobject(self) -> PrimExpr:
        """The load of all elements: one index has to be a range of constant length."""
        return BufferLoad(self.buffer, tuple([index_of_range(r, self) for r in self.region]))


def point_region(buffer: Buffer, indices: Sequence[PrimExpr]) -> BufferRegion:
    """One element of a buffer."""
    ranges = [Range.from_min_extent(index, int_imm(index.dtype, 1)) for index in indices]
    return BufferRegion(buffer, tuple(ranges))


def index_of_range(item: Range, region: BufferRegion) -> PrimExpr:
    """The index, or the vector of indices, that covers a range."""
    extent = item.extent
    if type(extent) is not IntImm and vscale_factor(extent) is None:
        raise RuntimeValueError(f"a vector requires a constant number of elements, got {region}")
    if type(extent) is IntImm and extent.value == 1:
        return item.min
    return Ramp(item.min, int_imm(item.min.dtype, 1), as_lanes(extent))


class MatchBufferRegion(Scriptable, Node):
    """``buffer`` is another view of the region ``source``."""

    buffer: Buffer = binder()
    source: BufferRegion

    def __init__(self, buffer: Buffer, source: BufferRegion) -> None:
        _check_view(buffer, source)
        self._init(buffer, source)


def _check_view(buffer: Buffer, source: BufferRegion) -> None:
    """Reject a view of another data type, scope or shape than the region that it is of."""
    for what, mine, given in (
        ("data type", buffer.dtype, source.buffer.dtype),
        ("storage scope", buffer.scope(), source.buffer.scope()),
    ):
        if mine != given:
            raise RuntimeValueError(
                f"a view of {source.buffer.name} requires its {what} {given}, got {mine}"
            )
    outer = len(source.region) - len(buffer.shape)
    if outer < 0:
        raise RuntimeValueError(
            f"a view requires at most the {len(source.region)} dimensions of {source}, "
            f"got {len(buffer.shape)}"
        )
    one = int_imm(as_dtype("int32"), 1)
    for item, extent in zip(source.region, [*[one] * outer, *buffer.shape], strict=True):
        apart = difference(*op.unify(item.extent, extent))
        if type(apart) is IntImm and apart.value != 0:
            raise RuntimeValueError(
                f"a view of {source} requires {item.extent} elements, got {extent}"
            )


class Block(Stmt):
    """A unit of scheduling: what ``body`` reads and writes, per point of its iteration space."""

    # definitions come before what uses them
    iter_vars: tuple[IterVar, ...]
    alloc_buffers: tuple[Buffer, ...] = binder("body", "init")
    match_buffers: tuple[MatchBufferRegion, ...]
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    name_hint: str = ignored()
    init: Stmt | None
    body: Stmt
    annotations: dict[str, Any] = child(default=None, convert=_annotations, shape=Shape.NESTED)

    def __init__(
        self,
        iter_vars: Sequence[IterVar],
        reads: Sequence[BufferRegion],
        writes: Sequence[BufferRegion],
        name_hint: str,
        body: Stmt,
        init: Stmt | None = None,
        alloc_buffers: Sequence[Buffer] | None = None,
        match_buffers: Sequence[MatchBufferRegion] | None = None,
        annotations: dict[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        self._init(
            tuple(iter_vars), tuple(alloc_buffers or ()), tuple(match_buffers or ()), tuple(reads),
            tuple(writes), name_hint, init, body, _annotations(annotations), span,
        )  # fmt: skip


class BlockRealize(Stmt):
    """Execute a block with values for its iteration variables, where ``predicate`` holds."""

    iter_values: tuple[PrimExpr, ...] = child(convert=as_exprs)
    predicate: PrimExpr = child(convert=_condition)
    block: Block

    def __check__(self) -> None:
        if len(self.iter_values) != len(self.block.iter_vars):
            raise RuntimeValueError(
                f"BlockRealize requires {len(self.block.iter_vars)} values for block "
                f"{self.block.name_hint}, got {len(self.iter_values)}"
            )


# ---- sequences


def seq(stmts: Iterable[Stmt]) -> Stmt:
    """The statements as one: nested sequences are joined, statements without effect dropped."""
    flat: list[Stmt] = []
    pending = list(stmts)
    pending.reverse()
    while pending:
        stmt = pending.pop()
        if type(stmt) is SeqStmt:
            pending.extend(reversed(stmt.seq))
        elif not is_no_op(stmt):
            flat.append(stmt)
    if len(flat) == 1:
        return flat[0]
    return SeqStmt._make(tuple(flat), None) if flat else NO_OP


def is_no_op(stmt: Stmt) -> bool:
    """Whether the statement does nothing: ``Evaluate`` of a constant, or an empty sequence."""
    if type(stmt) is Evaluate:
        return type(stmt.value) is IntImm
    return type(stmt) is SeqStmt and not stmt.seq


NO_OP = Evaluate(int_imm(as_dtype("int32"), 0))


def stmt_seq(*args: Any) -> Stmt:
    """The statements (or expressions to evaluate) as one statement."""
    if len(args) == 1:
        return args[0] if isinstance(args[0], Stmt) else Evaluate(args[0])
    return SeqStmt(args)


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, nested ones joined; a list of itself for another one."""
    if not isinstance(stmt, SeqStmt):
        return [stmt]
    return [inner for item in stmt.seq for inner in stmt_list(item)]


def range_of_index(index: Any, extent: PrimExpr) -> Range:
    """The range that an index or a slice of a buffer covers."""
    if isinstance(index, slice):
        begin = as_expr(0 if index.start is None else index.start, extent.dtype)
        stop = extent if index.stop is None else as_expr(index.stop, begin.dtype)
        return Range.from_min_extent(begin, difference(*op.unify(stop, begin)))
    start = as_expr(index, extent.dtype)
    if type(start) is Ramp:
        return Range.from_min_extent(start.base, op.multiply(start.stride, start.lanes))
    return Range.from_min_extent(start, int_imm(start.dtype, 1))


__all__ = [
    "NO_OP", "Allocate", "AllocateConst", "AssertStmt", "AttrStmt", "Block", "BlockRealize",
    "BufferRealize", "BufferRegion", "BufferStore", "DeclBuffer", "Evaluate", "For", "ForKind",
    "IfThenElse", "LetStmt", "MatchBufferRegion", "Prefetch", "ProducerRealize", "ProducerStore",
    "SeqStmt", "Stmt", "StringImm", "While", "is_no_op", "range_of_index", "seq", "stmt_list",
    "stmt_seq",
]  # fmt: skip
