"""How modules are written.

@I.ir_module
class Module:
    @T.prim_func
    def main(...):
"""

from __future__ import annotations

from tvm.ir.expr import GlobalVar
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.type import PrimType
from tvm.tir.function import PrimFunc

from .doc import (
    AssignDoc,
    AttrAccessDoc,
    ClassDoc,
    CommentDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    IdDoc,
    StmtBlockDoc,
    StmtDoc,
)
from .docsifier import Frame, IRDocsifier, Path


@IRDocsifier.register(IRModule)
def print_module(mod: IRModule, path: Path, d: IRDocsifier) -> Doc:
    """Functions of the loop level come first, each kind by name."""
    items = sorted(
        mod.functions.items(),
        key=lambda item: (_rank(item[1]), item[0].name_hint),
    )
    d.in_module = True
    d.vdevices = tuple(mod.global_infos.get("vdevice", ()))
    with d.frame(mod) as frame:
        _head(mod, path, frame, d)
        for var, func in items:
            _define(var, func, frame, d)
        for var, func in items:
            frame.stmts.append(_function(var, func, path.attr("functions").map_value(var), d))
    return with_header(ClassDoc(IdDoc("Module"), [d.ir("ir_module")], frame.stmts), d)


def _rank(func: BaseFunc) -> int:
    """Functions of the loop level come first, then packed ones, which have no text of their own."""
    return 0 if isinstance(func, PrimFunc) else (1 if hasattr(func, "global_symbol") else 2)


def _head(mod: IRModule, path: Path, frame: Frame, d: IRDocsifier) -> None:
    if mod.attrs:
        attrs = d.expr(mod.attrs, path.attr("attrs"))
        frame.stmts.append(ExprStmtDoc(d.ir("module_attrs").call(attrs)))
    if mod.global_infos:
        infos = d.expr(dict(mod.global_infos), path.attr("global_infos"))
        frame.stmts.append(ExprStmtDoc(d.ir("module_global_infos").call(infos)))


def _define(var: GlobalVar, func: BaseFunc, frame: Frame, d: IRDocsifier) -> None:
    alias = d.config.module_alias
    if isinstance(func, PrimFunc) and isinstance(func.ret_type, PrimType):
        d.result_types[var] = func.ret_type.dtype
    d.define_as(var, frame, lambda: AttrAccessDoc(IdDoc(alias or "Module"), var.name_hint))


def _function(var: GlobalVar, func: BaseFunc, path: Path, d: IRDocsifier) -> StmtDoc:
    if type(func) not in d.printers:
        return CommentDoc(f"{var.name_hint}: {func}")
    d.function_names.append(var.name_hint)
    doc = d.doc(func, path)
    d.function_names.pop()
    if isinstance(doc, ExprDoc):  # a packed function
        return AssignDoc(IdDoc(var.name_hint), doc)
    if not isinstance(doc, StmtBlockDoc):
        assert isinstance(doc, StmtDoc)
        return doc
    last = doc.stmts[-1]
    last.source_paths = doc.source_paths
    return last


def with_header(doc: StmtDoc, d: IRDocsifier) -> StmtBlockDoc:
    """A definition below the imports, as comments, of the words that it uses."""
    prefixes = {
        "ir": d.config.ir_prefix,
        "tir": d.config.tir_prefix,
        "relax": d.config.relax_prefix,
    }
    lines = [
        CommentDoc(f"from tvm.script import {name} as {prefix}")
        for name, prefix in prefixes.items()
        if name in d.dialects
    ]
    return StmtBlockDoc([*lines, CommentDoc(""), doc])
