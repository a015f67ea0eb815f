"""How functions are written."""

from __future__ import annotations

from typing import Any

from tvm.ir.type import TupleType
from tvm.tir import stmt as s
from tvm.tir.expr import IntImm, Var
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Stmt

from ..doc import AssignDoc, CommentDoc, Doc, ExprDoc, ExprStmtDoc, FunctionDoc, IdDoc, LiteralDoc
from ..docsifier import Frame, IRDocsifier, Path
from ..module import with_header
from .block import print_allocations
from .buffer import annotation, declaration, define_buffer, define_var, is_plain, type_doc
from .stmt import print_body


@IRDocsifier.register(PrimFunc)
def print_function(func: PrimFunc, path: Path, d: IRDocsifier) -> Doc:
    """``@T.prim_func`` and all that follows."""
    symbol = func.attrs.get("global_symbol")
    name = d.function_names[-1] if d.function_names else str(symbol or "main")
    with d.frame(func) as frame:
        args = _Parameters(func, path, frame, d).print()
        attrs = {k: v for k, v in func.attrs.items() if (k, v) != ("global_symbol", name)}
        if attrs:
            doc = d.expr(attrs, path.attr("attrs"))
            frame.stmts.append(ExprStmtDoc(d.tir("func_attr").call(doc)))
        for param, arg in zip(func.params, args, strict=True):
            buffer = func.buffer_map.get(param)
            if buffer is not None and not d.is_defined(buffer):
                place = path.attr("buffer_map").map_value(param)
                lhs = define_buffer(buffer, frame, d)
                rhs = declaration(buffer, "match_buffer", [arg.lhs], place, frame, d)
                frame.stmts.append(AssignDoc(lhs, rhs))
        _body(func.body, path.attr("body"), frame, d)
    decorator: ExprDoc = d.tir("prim_func")
    if symbol is None:
        decorator = decorator.call(private=LiteralDoc(True))
    result = _result(func, path, d)
    return with_header(FunctionDoc(IdDoc(name), args, [decorator], result, frame.stmts), d)


def _result(func: PrimFunc, path: Path, d: IRDocsifier) -> ExprDoc | None:
    kind = func.ret_type
    if kind is None or (isinstance(kind, TupleType) and not kind.fields):
        return None
    return d.expr(kind, path.attr("ret_type"))


class _Parameters:
    """The parameters of one function."""

    def __init__(self, func: PrimFunc, path: Path, frame: Frame, d: IRDocsifier) -> None:
        self.func, self.path, self.frame, self.d = func, path, frame, d

    def print(self) -> list[AssignDoc]:
        """The parameters with their types; those that are buffers are told by `is_defined`."""
        return [self._parameter(i, param) for i, param in enumerate(self.func.params)]

    def _parameter(self, index: int, param: Var) -> AssignDoc:
        d, frame = self.d, self.frame
        if self._is_annotation(param):
            buffer = self.func.buffer_map[param]
            lhs = define_buffer(buffer, frame, d)
            buffer_path = self.path.attr("buffer_map").map_value(param)
            return AssignDoc(lhs, None, annotation(buffer, buffer_path, frame, d))
        place = self.path.attr("params").array_index(index)
        kind = type_doc(param, place, d)
        return AssignDoc(define_var(param, frame, d), None, kind)

    def _is_annotation(self, param: Var) -> bool:
        """Whether the parameter can be written ``A: T.Buffer((16,), "float32")``."""
        func, d = self.func, self.d
        buffer = func.buffer_map.get(param)
        if buffer is None or not d.config.syntax_sugar:
            return False
        others = list(func.buffer_map.values())
        return (
            d.usage.counts.get(param, 0) <= 2  # among the parameters, and as a key of the buffers
            and all([type(extent) is IntImm for extent in buffer.shape])
            and is_plain(buffer)
            and sum([other.data is buffer.data for other in others]) == 1
            and param.dtype.is_handle
            and param.type_annotation is None
        )


def _body(body: Stmt, path: Path, frame: Frame, d: IRDocsifier) -> None:
    """The body; a root block that the parser adds by itself is a comment."""
    if not (d.config.syntax_sugar and is_implicit_root(body)):
        print_body(body, path, frame, d)
        return
    assert isinstance(body, s.BlockRealize)
    root, path = body.block, path.attr("block")
    frame.stmts.append(CommentDoc(f'with {d.config.tir_prefix}.block("root"):'))
    print_allocations(root, path, frame, d)
    print_body(root.body, path.attr("body"), frame, d)


def is_implicit_root(body: Stmt) -> bool:
    """Whether the body is a root block that need not be written."""
    if not isinstance(body, s.BlockRealize):
        return False
    block = body.block
    predicate = body.predicate
    if (
        block.name_hint != "root"
        or block.iter_vars
        or block.reads
        or block.writes
        or block.match_buffers
        or block.annotations
        or block.init is not None
        or not (type(predicate) is IntImm and predicate.value == 1)
    ):
        return False
    inner = block.body
    if isinstance(inner, s.BlockRealize):
        return bool(block.alloc_buffers or inner.block.iter_vars)
    return bool(block.alloc_buffers) or contains_block(inner)


def contains_block(stmt: Any) -> bool:
    """Whether a statement has a block realisation in it."""
    pending = [stmt]
    while pending:
        node = pending.pop()
        if isinstance(node, s.BlockRealize):
            return True
        pending += [part for part in node.children() if isinstance(part, Stmt)]
    return False
