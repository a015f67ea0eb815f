"""How functions are written.

@R.function
def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
    n = T.int64()
    ...
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import GlobalVar
from tvm.ir.visitor import Visitor
from tvm.relax import expr as rx
from tvm.relax.struct_info import FuncStructInfo
from tvm.script.printer.doc import (
    AssignDoc,
    DictDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    FunctionDoc,
    IdDoc,
    LiteralDoc,
    ReturnDoc,
)
from tvm.script.printer.docsifier import IRDocsifier, Path
from tvm.script.printer.module import with_header

from .binding import print_blocks
from .struct_info import word


class _GlobalVars(Visitor):
    def __init__(self) -> None:
        self.found: dict[GlobalVar, None] = {}

    def visit_global_var(self, var: GlobalVar) -> None:
        self.found[var] = None


def _uses_module(func: rx.Function, d: IRDocsifier) -> bool:
    visitor = _GlobalVars()
    visitor.visit(func)
    return any([d.is_defined(var) for var in visitor.found])


@IRDocsifier.register(rx.Function)
def print_function(func: rx.Function, path: Path, d: IRDocsifier) -> Doc:
    symbol = func.attrs.get("global_symbol")
    name = d.function_names[-1] if d.function_names else str(symbol or "main")
    is_nested = d.nested > 0
    with d.frame(func) as frame:
        args = _parameters(func, path, d)
        ret = _in_signature(func.ret_struct_info, path.attr("ret_struct_info"), d)
        attrs = {k: v for k, v in func.attrs.items() if (k, v) != ("global_symbol", name)}
        if not is_nested and _names_module(func, d):
            frame.stmts.append(AssignDoc(IdDoc(d.config.module_alias), IdDoc("Module")))
        if attrs:
            given = _attributes(attrs, path.attr("attrs"), d)
            frame.stmts.append(ExprStmtDoc(word("func_attr", d).call(given)))
        if func.body is not None:
            print_blocks(func.body, path.attr("body"), frame, d)
            result = d.expr(func.body.body, path.attr("body").attr("body"))
            frame.stmts.append(ReturnDoc(result))
    decorator = _decorator(func, symbol is None and not is_nested, d)
    return with_header(FunctionDoc(IdDoc(name), args, [decorator], ret, frame.stmts), d)


def _names_module(func: rx.Function, d: IRDocsifier) -> bool:
    in_module = d.in_module
    return bool(d.config.module_alias) and in_module and _uses_module(func, d)


def _attributes(attrs: dict[str, Any], path: Path, d: IRDocsifier) -> ExprDoc:
    """Attributes by name; truth values are Python's."""

    def written(name: str, value: Any) -> ExprDoc:
        if isinstance(value, bool):
            return LiteralDoc(value)
        return d.expr(value, path.map_value(name))

    return DictDoc({LiteralDoc(name): written(name, attrs[name]) for name in sorted(attrs)})


def _in_signature(info: Any, path: Path, d: IRDocsifier) -> ExprDoc:
    """Struct info, in which symbolic variables are texts."""
    outer = d.in_signature
    d.in_signature = True
    doc = d.expr(info, path)
    d.in_signature = outer
    return doc


def _parameters(func: rx.Function, path: Path, d: IRDocsifier) -> list[AssignDoc]:
    docs = []
    for i, param in enumerate(func.params):
        place = path.attr("params").array_index(i)
        note = _in_signature(param.struct_info, place.attr("struct_info_"), d)
        docs.append(AssignDoc(d.define(param, d.frames[-1], param.name_hint or "v"), None, note))
    return docs


def _decorator(func: rx.Function, is_private: bool, d: IRDocsifier) -> ExprDoc:
    options: dict[str, ExprDoc] = {}
    if not func.is_pure:
        options["pure"] = LiteralDoc(False)
    if is_private:
        options["private"] = LiteralDoc(True)
    word_doc = word("function", d)
    return word_doc.call(**options) if options else word_doc


@IRDocsifier.register(rx.ExternFunc)
def print_extern(func: rx.ExternFunc, path: Path, d: IRDocsifier) -> Doc:
    """``R.ExternFunc("name")``, with its signature if it has one."""
    made = word("ExternFunc", d)
    info = func.struct_info_
    args: list[ExprDoc] = [LiteralDoc(func.global_symbol)]
    if isinstance(info, FuncStructInfo) and info != rx.ExternFunc(func.global_symbol).struct_info_:
        args.append(d.expr(info, path.attr("struct_info_")))
    return made.call(*args)
