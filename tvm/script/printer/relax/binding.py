"""How bindings, blocks and branches are written."""

from __future__ import annotations

from typing import Any

from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.relax import expr as rx
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.struct_info import TupleStructInfo
from tvm.script.printer.doc import (
    AssignDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    ScopeDoc,
    StmtBlockDoc,
    StmtDoc,
)
from tvm.script.printer.docsifier import Frame, IRDocsifier, Path

from .struct_info import word

_SAY_RESULT = ("relax.call_tir", "relax.call_dps_packed")


def annotation(var: rx.Var, value: Any, path: Path, d: IRDocsifier) -> ExprDoc | None:
    """The struct info of a variable, unless the value says it."""
    info = var.struct_info_
    if info is None:
        return None
    hides = not d.config.show_all_struct_info
    is_call = isinstance(value, rx.Call)
    if is_call and isinstance(value.op, Op) and value.op.name in _SAY_RESULT:
        hides = True
    if hides:
        known = value.struct_info_ if isinstance(value, rx.Var) else None
        if is_call:
            known = BlockBuilder().infer(value)
        if isinstance(value, (rx.Constant, rx.Tuple, rx.TupleGetItem, rx.ShapeExpr)):
            known = value.struct_info_
        if known is not None and structural_equal(known, info):
            return None
    return d.expr(info, path.attr("struct_info_"))


def _define(var: rx.Var, d: IRDocsifier) -> IdDoc:
    return d.define(var, d.frames[-1], var.name_hint or "v")


@IRDocsifier.register(rx.VarBinding)
def print_var_binding(binding: rx.VarBinding, path: Path, d: IRDocsifier) -> Doc:
    value, place = binding.value, path.attr("value")
    if isinstance(value, rx.If):
        note = annotation(binding.var, value, path.attr("var"), d)
        choice = print_choice(value, place, d, binding.var, note)
        _define_again(binding.var, d)
        return choice
    if isinstance(value, rx.Function):
        name = _define(binding.var, d)
        d.function_names.append(name.name)
        d.nested = d.nested + 1
        doc = d.doc(value, place)
        d.nested -= 1
        d.function_names.pop()
        return doc
    if isinstance(value, rx.ExternFunc):
        rhs: ExprDoc = d.expr(value, place)
    else:
        rhs = d.expr(value, place)
    if _is_effect(binding, d):
        return ExprStmtDoc(rhs)
    note = annotation(binding.var, value, path.attr("var"), d)
    return AssignDoc(_define(binding.var, d), rhs, note)


def _is_effect(binding: rx.VarBinding, d: IRDocsifier) -> bool:
    """Whether a call without a result is a statement of its own."""
    info = binding.var.struct_info_
    is_empty = isinstance(info, TupleStructInfo) and not info.fields
    is_call = isinstance(binding.value, rx.Call)
    return is_empty and is_call and not d.usage.counts.get(binding.var, 0)  # type: ignore[call-overload]


def _define_again(var: rx.Var, d: IRDocsifier) -> None:
    """Branches define the variable in their own frames; it is defined behind them, too."""
    name = d.last_name or var.name_hint
    d.define_as(var, d.frames[-1], lambda: IdDoc(name))


@IRDocsifier.register(rx.MatchCast)
def print_match_cast(binding: rx.MatchCast, path: Path, d: IRDocsifier) -> Doc:
    value = d.expr(binding.value, path.attr("value"))
    info = d.expr(binding.struct_info, path.attr("struct_info"))
    rhs = word("match_cast", d).call(value, info)
    note = None
    if d.config.show_all_struct_info and binding.var.struct_info_ is not None:
        note = d.expr(binding.var.struct_info_, path.attr("var").attr("struct_info_"))
    return AssignDoc(_define(binding.var, d), rhs, note)


@IRDocsifier.register(rx.If)
def print_if(choice: rx.If, path: Path, d: IRDocsifier) -> Doc:
    return print_choice(choice, path, d, None, None)


def print_choice(
    choice: rx.If, path: Path, d: IRDocsifier, var: rx.Var | None, note: ExprDoc | None
) -> IfDoc:
    """A choice whose value a variable has."""
    cond = d.expr(choice.cond, path.attr("cond"))
    bodies = []
    name = None
    if var is not None:
        name = d.names.take(var.name_hint or "v")
        d.last_name = name
    for branch, field in (
        (choice.true_branch, "true_branch"),
        (choice.false_branch, "false_branch"),
    ):
        with d.frame(branch) as frame:
            _body(branch, path.attr(field), frame, d, name, note)
        bodies.append(frame.stmts)
    if name is not None:
        d.last_name = name
    return IfDoc(cond, *bodies)


def _body(
    seq: rx.SeqExpr, path: Path, frame: Frame, d: IRDocsifier, name: str | None, note: Any
) -> None:
    print_blocks(seq, path, frame, d)
    result = d.expr(seq.body, path.attr("body"))
    if name is None:
        frame.stmts.append(ExprStmtDoc(result))
    else:
        frame.stmts.append(AssignDoc(IdDoc(name), result, note))


def print_blocks(seq: rx.SeqExpr, path: Path, frame: Frame, d: IRDocsifier) -> None:
    """The bindings of all blocks."""
    place = path.attr("blocks")
    for i, block in enumerate(seq.blocks):
        _append(d.doc(block, place.array_index(i)), frame)


def _append(doc: Doc, frame: Frame) -> None:
    if isinstance(doc, StmtBlockDoc):
        frame.stmts.extend(doc.stmts)
    else:
        assert isinstance(doc, StmtDoc)
        frame.stmts.append(doc)


def _bindings(block: rx.BindingBlock, path: Path, d: IRDocsifier) -> list[StmtDoc]:
    """Bindings, with what they declare before them."""
    frame = d.frames[-1]
    first = len(frame.stmts)
    place = path.attr("bindings")
    for i, binding in enumerate(block.bindings):
        doc = d.doc(binding, place.array_index(i))
        if isinstance(doc, StmtBlockDoc):
            frame.stmts.extend(doc.stmts)
        elif isinstance(doc, (StmtDoc, FunctionDoc)):
            frame.stmts.append(doc)
    added = frame.stmts[first:]
    del frame.stmts[first:]
    return added


@IRDocsifier.register(rx.BindingBlock)
def print_block(block: rx.BindingBlock, path: Path, d: IRDocsifier) -> Doc:
    return StmtBlockDoc(_bindings(block, path, d))


@IRDocsifier.register(rx.DataflowBlock)
def print_dataflow(block: rx.DataflowBlock, path: Path, d: IRDocsifier) -> Doc:
    """``with R.dataflow():``; the block's own variables have no names behind it."""
    stmts = _bindings(block, path, d)
    outputs = [b.var for b in block.bindings if type(b.var) is rx.Var]
    names: list[Any] = [d.defined(var) for var in outputs]
    stmts = stmts + [ExprStmtDoc(word("output", d).call(*[n for n in names if n is not None]))]
    free = {id(s) for s in d.frames[-1].declarations}
    declared = [s for s in stmts if id(s) in free]
    inside = [s for s in stmts if id(s) not in free]
    return StmtBlockDoc([*declared, ScopeDoc(None, word("dataflow", d).call(), inside)])


@IRDocsifier.register(rx.SeqExpr)
def print_sequence(seq: rx.SeqExpr, path: Path, d: IRDocsifier) -> Doc:
    with d.frame(seq) as frame:
        _body(seq, path, frame, d, None, None)
    return StmtBlockDoc(frame.stmts)
