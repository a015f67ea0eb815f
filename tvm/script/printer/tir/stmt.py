"""How statements are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.type import PointerType, PrimType
from tvm.runtime.object_path import ObjectPath
from tvm.tir import stmt as s
from tvm.tir.buffer import Buffer, content_dtype
from tvm.tir.constants import is_one, is_zero
from tvm.tir.expr import Call, IterVar, Var
from tvm.tir.stmt import ForKind, Stmt

from ..doc import (
    AssertDoc,
    AssignDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    ForDoc,
    IdDoc,
    IfDoc,
    IndexDoc,
    ListDoc,
    LiteralDoc,
    ScopeDoc,
    SliceDoc,
    StmtBlockDoc,
    StmtDoc,
    TupleDoc,
    WhileDoc,
)
from ..docsifier import Frame, IRDocsifier, Path
from .buffer import (
    declaration,
    define_buffer,
    define_var,
    end_of,
    is_plain,
    producer_name,
    type_doc,
)

LOOP_NAMES = {
    ForKind.SERIAL: "serial",
    ForKind.PARALLEL: "parallel",
    ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unroll",
    ForKind.THREAD_BINDING: "thread_binding",
}


# ---- bodies


def print_body(stmt: Stmt, path: Path, frame: Frame, d: IRDocsifier) -> None:
    """Add a body's statements to a frame."""
    if type(stmt) is not s.SeqStmt or not stmt.seq:
        frame.is_last = True
        _append(d.doc(stmt, path), frame)
        return
    for index, item in enumerate(stmt.seq):
        frame.is_last = index == len(stmt.seq) - 1
        doc = d.doc(item, path.attr("seq").array_index(index))
        if isinstance(path, ObjectPath):
            doc.source_paths = (*doc.source_paths, path)
        _append(doc, frame)


def _append(doc: Doc, frame: Frame) -> None:
    if isinstance(doc, _Placed):
        return
    if not isinstance(doc, StmtBlockDoc):
        assert isinstance(doc, StmtDoc)
        frame.stmts.append(doc)
        return
    if doc.source_paths:
        # a block has no text of its own to be underlined
        for stmt in doc.stmts:
            stmt.source_paths = (*stmt.source_paths, *doc.source_paths)
    frame.stmts.extend(doc.stmts)


class _Placed(StmtBlockDoc):
    """A statement that stands in its frame already, with the rest behind it."""


class _Binding:
    """A construct that holds for the rest of its suite if nothing else follows it.

    ``lhs = rhs`` and the rest at the same level    or    ``with rhs as lhs:``
    """

    def __init__(self, node: Stmt, d: IRDocsifier) -> None:
        self.d = d
        self.holds_for_rest = d.frames[-1].is_last and not d.is_annotated(node)
        self.frame = d.rest_frame(node) if self.holds_for_rest else d.frame(node)

    def document(
        self, head: StmtDoc, scope: tuple[ExprDoc | None, ExprDoc], body: Stmt, path: Path
    ) -> Doc:
        """``head`` and the body, or a ``with`` statement of (target, construct) around it."""
        frame = self.frame
        if not self.holds_for_rest:
            print_body(body, path, frame, self.d)
            return ScopeDoc(*scope, frame.stmts)
        frame.stmts.append(head)
        print_body(body, path, frame, self.d)
        own = isinstance(self.d.root, ObjectPath)
        return StmtBlockDoc(frame.stmts) if own else _Placed([head])


def _scoped(binding: _Binding, lhs: ExprDoc | None, rhs: ExprDoc, body: Stmt, path: Path) -> Doc:
    head = ExprStmtDoc(rhs) if lhs is None else AssignDoc(lhs, rhs)
    return binding.document(head, (lhs, rhs), body, path)


# ---- plain statements


@IRDocsifier.register(s.SeqStmt)
def print_seq(node: s.SeqStmt, path: Path, d: IRDocsifier) -> Doc:
    if not node.seq:
        return ExprStmtDoc(IdDoc("pass"))
    with d.frame(node) as frame:
        print_body(node, path, frame, d)
    return StmtBlockDoc(frame.stmts)


@IRDocsifier.register(s.Evaluate)
def print_evaluate(node: s.Evaluate, path: Path, d: IRDocsifier) -> Doc:
    value = d.expr(node.value, path.attr("value"))
    return ExprStmtDoc(value if isinstance(node.value, Call) else d.tir("evaluate").call(value))


@IRDocsifier.register(s.Prefetch)
def print_prefetch(node: s.Prefetch, path: Path, d: IRDocsifier) -> Doc:
    buffer = d.expr(node.buffer, path.attr("buffer"))
    return ExprStmtDoc(d.tir("prefetch").call(buffer, d.expr(node.bounds, path.attr("bounds"))))


# ---- bindings


@IRDocsifier.register(s.LetStmt)
def print_let(node: s.LetStmt, path: Path, d: IRDocsifier) -> Doc:
    binding = _Binding(node, d)
    var = node.var
    var_path = path.attr("var")
    kind = type_doc(var, var_path, d)
    value = d.expr(node.value, path.attr("value"))
    if d.is_defined(var):
        construct = d.tir("LetStmt").call(value, var=d.expr(var, var_path))
        with d.frame(node) as frame:
            print_body(node.body, path.attr("body"), frame, d)
        return ScopeDoc(None, construct, frame.stmts)
    with binding.frame:
        define_var(var, binding.frame, d)
        lhs = d.expr(var, var_path)
        plain = var.type_annotation is None or isinstance(var.type_annotation, PrimType)
        plain = plain and var.dtype is node.value.dtype
        construct = d.tir("LetStmt").call(value) if plain else d.tir("LetStmt").call(value, kind)
        head = AssignDoc(lhs, value, kind)
        return binding.document(head, (lhs, construct), node.body, path.attr("body"))


@IRDocsifier.register(s.AssertStmt)
def print_assert(node: s.AssertStmt, path: Path, d: IRDocsifier) -> Doc:
    binding = _Binding(node, d)
    condition = d.expr(node.condition, path.attr("condition"))
    message = d.expr(node.message, path.attr("message"))
    with binding.frame:
        construct = d.tir("Assert").call(condition, message)
        head = AssertDoc(condition, message)
        return binding.document(head, (None, construct), node.body, path.attr("body"))


@IRDocsifier.register(s.Allocate)
def print_allocate(node: s.Allocate, path: Path, d: IRDocsifier) -> Doc:
    if _is_declared_whole(node, d):
        return _declare(node.body, path.attr("body"), d, gives_memory=True)
    binding = _Binding(node, d)
    extents = d.expr(node.extents, path.attr("extents"))
    scope = LiteralDoc(_storage_scope(node.buffer_var))
    options: dict[str, ExprDoc] = {}
    if not is_one(node.condition):
        options["condition"] = d.expr(node.condition, path.attr("condition"))
    if node.annotations:
        options["annotations"] = d.expr(node.annotations, path.attr("annotations"))
    rhs = d.tir("allocate").call(extents, LiteralDoc(str(node.dtype)), scope, **options)
    with binding.frame:
        lhs = define_var(node.buffer_var, binding.frame, d)
        return _scoped(binding, lhs, rhs, node.body, path.attr("body"))


def _is_declared_whole(node: s.Allocate, d: IRDocsifier) -> bool:
    """An allocation and the buffer that is all of it are written as one."""
    decl = node.body
    if not d.config.syntax_sugar or not isinstance(decl, s.DeclBuffer) or node.annotations:
        return False
    buffer = decl.buffer
    return (
        buffer.data is node.buffer_var
        and buffer.dtype is node.dtype
        and is_plain(buffer, in_any_scope=True)
        and is_one(node.condition)
        and structural_equal(buffer.shape, node.extents)
        and not d.is_defined(buffer.data)
        and _content(buffer.data) is content_dtype(buffer.dtype)
    )


def _declare(node: Any, path: Path, d: IRDocsifier, gives_memory: bool) -> Doc:
    binding = _Binding(node, d)
    buffer: Buffer = node.buffer
    # what the buffer brings is defined ahead of it
    around = binding.frame if binding.holds_for_rest else d.frames[-1]
    with binding.frame:
        lhs = define_buffer(buffer, binding.frame, d)
        place = path.attr("buffer")
        rhs = declaration(buffer, "decl_buffer", [], place, around, d, gives_memory)
        return _scoped(binding, lhs, rhs, node.body, path.attr("body"))


@IRDocsifier.register(s.DeclBuffer)
def print_decl_buffer(node: s.DeclBuffer, path: Path, d: IRDocsifier) -> Doc:
    return _declare(node, path, d, gives_memory=False)


@IRDocsifier.register(s.AllocateConst)
def print_allocate_const(node: s.AllocateConst, path: Path, d: IRDocsifier) -> Doc:
    binding = _Binding(node, d)
    extents = d.expr(node.extents, path.attr("extents"))
    options: dict[str, ExprDoc] = {}
    args: list[ExprDoc] = []
    if node.data is not None:
        args = [ListDoc([LiteralDoc(value) for value in node.data.numpy().ravel().tolist()])]
    else:
        options["data_idx"] = LiteralDoc(int(node.irmod_storage_idx))  # type: ignore[call-overload]
    if node.annotations:
        options["annotations"] = d.expr(node.annotations, path.attr("annotations"))
    rhs = d.tir("allocate_const").call(*args, LiteralDoc(str(node.dtype)), extents, **options)
    with binding.frame:
        lhs = define_var(node.buffer_var, binding.frame, d)
        return _scoped(binding, lhs, rhs, node.body, path.attr("body"))


@IRDocsifier.register(s.BufferRealize)
def print_realize(node: s.BufferRealize, path: Path, d: IRDocsifier) -> Doc:
    binding = _Binding(node, d)
    rhs = _realize(node, None, path, d)
    with binding.frame:
        return _scoped(binding, None, rhs, node.body, path.attr("body"))


def _realize(node: s.BufferRealize, scope: ExprDoc | None, path: Path, d: IRDocsifier) -> ExprDoc:
    buffer = d.expr(node.buffer, path.attr("buffer"))
    bounds = _slices(node.bounds, path.attr("bounds"), d)
    options = {}
    if not is_one(node.condition):
        options["condition"] = d.expr(node.condition, path.attr("condition"))
    args = [] if scope is None else [scope]
    return d.tir("realize").call(IndexDoc(buffer, bounds), *args, **options)


def _slices(bounds: Any, path: Path, d: IRDocsifier) -> list[SliceDoc]:
    result = []
    for i, item in enumerate(bounds):
        place = path.array_index(i)
        start = d.expr(item.min, place.attr("min"))
        result.append(SliceDoc(start, end_of(item.min, item.extent, place, d)))
    return result


@IRDocsifier.register(s.ProducerRealize)
def print_producer_realize(node: s.ProducerRealize, path: Path, d: IRDocsifier) -> Doc:
    binding = _Binding(node, d)
    region = IndexDoc(
        IdDoc(producer_name(node.producer)), _slices(node.bounds, path.attr("bounds"), d)
    )
    rhs = d.tir("ProducerRealize").call(region, LiteralDoc(str(node.storage_scope)))
    with binding.frame:
        return _scoped(binding, None, rhs, node.body, path.attr("body"))


# ---- attributes


@IRDocsifier.register(s.AttrStmt)
def print_attr(node: s.AttrStmt, path: Path, d: IRDocsifier) -> Doc:
    if is_launch(node):
        return _launch(node, path, d)
    binding = _Binding(node, d)
    inner, body_path = node.body, path.attr("body")
    value = d.expr(node.value, path.attr("value"))
    if (
        node.attr_key == "realize_scope"
        and isinstance(inner, s.BufferRealize)
        and inner.buffer is node.node
    ):
        rhs = _realize(inner, value, body_path, d)
        inner, body_path = inner.body, body_path.attr("body")
    else:
        subject = d.expr(node.node, path.attr("node"))
        rhs = d.tir("attr").call(subject, LiteralDoc(str(node.attr_key)), value)
    with binding.frame:
        return _scoped(binding, None, rhs, inner, body_path)


def is_launch(attr: s.AttrStmt) -> bool:
    """Whether the statement gives a thread axis just the range that the axis has."""
    axis = attr.node
    if attr.attr_key not in ("thread_extent", "virtual_thread") or not isinstance(axis, IterVar):
        return False
    is_virtual = axis.thread_tag.startswith("vthread")
    dom = axis.dom
    return (
        axis.iter_type == IterVar.ThreadIndex
        and is_virtual == (attr.attr_key == "virtual_thread")
        and (dom is None or (is_zero(dom.min) and structural_equal(dom.extent, attr.value)))
    )


def _launch(node: s.AttrStmt, path: Path, d: IRDocsifier) -> Doc:
    """``threadIdx_x = T.launch_thread("threadIdx.x", 32)``"""
    binding = _Binding(node, d)
    axis = node.node
    var_path = path.attr("node").attr("var")
    tag = LiteralDoc(str(axis.thread_tag))
    is_new = not d.is_defined(axis.var)
    brings_variable = is_new and d.usage.is_around_all_uses(node, axis.var)
    if is_new and not brings_variable:
        outer = d.frame_around_uses(axis.var)
        options = {} if axis.var.dtype == "int32" else {"dtype": LiteralDoc(str(axis.var.dtype))}
        env_thread = d.tir("env_thread").call(tag, **options)
        outer.stmts.append(AssignDoc(define_var(axis.var, outer, d), env_thread))
    thread = tag if brings_variable else d.expr(axis.var, var_path)
    rhs = d.tir("launch_thread").call(thread, d.expr(node.value, path.attr("value")))
    with binding.frame:
        lhs = define_var(axis.var, binding.frame, d) if brings_variable else None
        return _scoped(binding, lhs, rhs, node.body, path.attr("body"))


# ---- loops and branches


@IRDocsifier.register(s.For)
def print_for(loop: s.For, path: Path, d: IRDocsifier) -> Doc:
    nest = _grid(loop, d)
    # what the head names is defined ahead of the loop, not in it
    if len(nest) > 1:
        rhs: ExprDoc = d.tir("grid").call(*_grid_extents(nest, path, d))
    else:
        rhs = _loop_head(loop, path, d)
    with d.frame(loop) as frame:
        names = [define_var(inner.loop_var, frame, d) for inner in nest]
        for _ in nest:
            path = path.attr("body")
        print_body(nest[-1].body, path, frame, d)
    return ForDoc(TupleDoc(names) if len(names) > 1 else names[0], rhs, frame.stmts)


def _grid_extents(nest: Sequence[s.For], path: Path, d: IRDocsifier) -> list[ExprDoc]:
    result = []
    for loop in nest:
        result.append(d.expr(loop.extent, path.attr("extent")))
        path = path.attr("body")
    return result


def _grid(loop: s.For, d: IRDocsifier) -> list[s.For]:
    """The loops that ``T.grid`` can write as one."""
    nest: list[s.For] = []
    variables: dict[Var, None] = {}
    inner: Any = loop
    while (
        d.config.syntax_sugar
        and isinstance(inner, s.For)
        and is_simple_loop(inner)
        and not _mentions(inner.extent, variables)
        and not (nest and d.is_annotated(inner))
    ):
        nest.append(inner)
        variables[inner.loop_var] = None
        inner = inner.body
    return nest or [loop]


def _loop_head(loop: s.For, path: Path, d: IRDocsifier) -> ExprDoc:
    is_plain_range = loop.kind is ForKind.SERIAL and not loop.annotations
    head = IdDoc("range") if is_plain_range else d.tir(LOOP_NAMES[loop.kind])
    if is_zero(loop.min):
        args = [d.expr(loop.extent, path.attr("extent"))]
    else:
        args = [d.expr(loop.min, path.attr("min")), end_of(loop.min, loop.extent, path, d)]
    options: dict[str, ExprDoc] = {}
    if loop.kind is ForKind.THREAD_BINDING and loop.thread_binding is not None:
        options["thread"] = LiteralDoc(str(loop.thread_binding.thread_tag))
    if loop.annotations:
        options["annotations"] = d.expr(loop.annotations, path.attr("annotations"))
    return head.call(*args, **options)


@IRDocsifier.register(s.While)
def print_while(node: s.While, path: Path, d: IRDocsifier) -> Doc:
    condition = d.expr(node.condition, path.attr("condition"))
    with d.frame(node) as frame:
        print_body(node.body, path.attr("body"), frame, d)
    return WhileDoc(condition, frame.stmts)


@IRDocsifier.register(s.IfThenElse)
def print_if(node: s.IfThenElse, path: Path, d: IRDocsifier) -> Doc:
    condition = d.expr(node.condition, path.attr("condition"))
    branches: list[list[StmtDoc]] = []
    for name in ("then_case", "else_case"):
        branch = getattr(node, name)
        with d.frame(branch) as frame:
            if branch is not None:
                print_body(branch, path.attr(name), frame, d)
        branches.append(frame.stmts)
    return IfDoc(condition, *branches)


def is_simple_loop(loop: s.For) -> bool:
    """Whether the loop is serial, from zero, and without annotations."""
    return (
        loop.kind is ForKind.SERIAL
        and is_zero(loop.min)
        and not loop.annotations
        and loop.thread_binding is None
    )


# ---- small questions


def _mentions(expr: PrimExpr, variables: dict[Var, None]) -> bool:
    pending: list[Any] = [expr]
    while pending:
        node = pending.pop()
        if isinstance(node, Var) and node in variables:
            return True
        pending += node.children()
    return False


def _storage_scope(var: Var) -> str:
    kind = var.type_annotation
    return str(kind.storage_scope) if isinstance(kind, PointerType) else "global"


def _content(var: Var) -> Any:
    """The data type that a pointer points to."""
    kind = var.type_annotation
    if isinstance(kind, PointerType) and isinstance(kind.element_type, PrimType):
        return kind.element_type.dtype
    return None
