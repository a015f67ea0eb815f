"""How blocks are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.ir.structural import structural_equal
from tvm.runtime.object_path import ObjectPath
from tvm.tir import stmt as s
from tvm.tir.constants import is_one, is_zero
from tvm.tir.expr import IterVar, Var

from ..doc import (
    AssignDoc,
    Doc,
    ExprDoc,
    ExprStmtDoc,
    ListDoc,
    LiteralDoc,
    ScopeDoc,
    StmtDoc,
    TupleDoc,
)
from ..docsifier import Frame, IRDocsifier, Path
from ..values import expr_list
from .buffer import declaration, define_buffer, define_var, end_of
from .stmt import print_body

AXIS_NAMES = {
    IterVar.DataPar: "spatial",
    IterVar.CommReduce: "reduce",
    IterVar.Ordered: "scan",
    IterVar.Opaque: "opaque",
}
AXIS_LETTERS = {IterVar.DataPar: "S", IterVar.CommReduce: "R"}


@IRDocsifier.register(s.BlockRealize)
def print_block_realize(node: s.BlockRealize, path: Path, d: IRDocsifier) -> Doc:
    doc = _block(node.block, path.attr("block"), node, path, d)
    inner = path.attr("block")
    if isinstance(inner, ObjectPath):
        doc.source_paths = [inner]
    return doc


@IRDocsifier.register(s.Block)
def print_block(node: s.Block, path: Path, d: IRDocsifier) -> Doc:
    return _block(node, path, None, path, d)


def _block(
    block: s.Block, path: Path, realize: s.BlockRealize | None, realize_path: Path, d: IRDocsifier
) -> Doc:
    with d.frame(block) as frame:
        _Axes(block, path, realize, realize_path, frame, d).print()
        if realize is not None and not is_one(realize.predicate):
            predicate = d.expr(realize.predicate, realize_path.attr("predicate"))
            frame.stmts.append(ExprStmtDoc(d.tir("where").call(predicate)))
        for name in ("reads", "writes"):
            regions = expr_list(getattr(block, name), path.attr(name), d)
            frame.stmts.append(ExprStmtDoc(d.tir(name).call(*regions)))
        print_annotations(block, path, frame, d)
        print_allocations(block, path, frame, d)
        for i, match in enumerate(block.match_buffers):
            doc = d.doc(match, path.attr("match_buffers").array_index(i))
            assert isinstance(doc, StmtDoc)
            frame.stmts.append(doc)
        if block.init is not None:
            with d.frame(block.init) as init_frame:
                print_body(block.init, path.attr("init"), init_frame, d)
            frame.stmts.append(ScopeDoc(None, d.tir("init").call(), init_frame.stmts))
        print_body(block.body, path.attr("body"), frame, d)
    options = {} if realize is not None else {"no_realize": LiteralDoc(True)}
    head = d.tir("block").call(LiteralDoc(str(block.name_hint)), **options)
    return ScopeDoc(None, head, frame.stmts)


def print_annotations(block: s.Block, path: Path, frame: Frame, d: IRDocsifier) -> None:
    """``T.block_attr({...})``"""
    if block.annotations:
        notes = d.expr(block.annotations, path.attr("annotations"))
        frame.stmts.append(ExprStmtDoc(d.tir("block_attr").call(notes)))


def print_allocations(block: s.Block, path: Path, frame: Frame, d: IRDocsifier) -> None:
    """``A = T.alloc_buffer((16,))``"""
    for i, buffer in enumerate(block.alloc_buffers):
        place = path.attr("alloc_buffers").array_index(i)
        lhs = define_buffer(buffer, frame, d)
        rhs = declaration(buffer, "alloc_buffer", [], place, frame, d)
        frame.stmts.append(AssignDoc(lhs, rhs))


class _Axes:
    """The axes of one block; those that are variables of loops over the same range go together."""

    def __init__(
        self,
        block: s.Block,
        path: Path,
        realize: s.BlockRealize | None,
        realize_path: Path,
        frame: Frame,
        d: IRDocsifier,
    ) -> None:
        self.block, self.path, self.frame, self.d = block, path, frame, d
        self.values: Sequence[Any] = (
            realize.iter_values if realize is not None else [None] * len(block.iter_vars)
        )
        self.values_path = realize_path.attr("iter_values")
        self.loops = _loops(d)

    def print(self) -> None:
        """Add the lines to the frame."""
        together: list[int] = []
        for index in range(len(self.values)):
            if self._is_remapped(index):
                together.append(index)
                continue
            self._flush(together)
            self._single(index)
        self._flush(together)

    def _flush(self, together: list[int]) -> None:
        if len(together) == 1:
            self._single(together[0])
        elif together:
            self._remap(together)
        together.clear()

    def _is_remapped(self, index: int) -> bool:
        axis, value = self.block.iter_vars[index], self.values[index]
        if not (self.d.config.syntax_sugar and isinstance(value, Var) and axis.dom is not None):
            return False
        loop = self.loops.get(value)
        return (
            loop is not None
            and axis.iter_type in AXIS_LETTERS
            and axis.var.dtype is value.dtype
            and structural_equal((loop.min, loop.extent), (axis.dom.min, axis.dom.extent))
        )

    def _value(self, index: int) -> ExprDoc:
        return self.d.expr(self.values[index], self.values_path.array_index(index))

    def _remap(self, together: list[int]) -> None:
        axes = [self.block.iter_vars[index] for index in together]
        names = [define_var(axis.var, self.frame, self.d) for axis in axes]
        letters = "".join([AXIS_LETTERS[axis.iter_type] for axis in axes])
        values = ListDoc([self._value(index) for index in together])
        rhs = self.d.tir("axis").attr("remap").call(LiteralDoc(letters), values)
        self.frame.stmts.append(AssignDoc(TupleDoc(names), rhs))

    def _single(self, index: int) -> None:
        axis, d = self.block.iter_vars[index], self.d
        path = self.path.attr("iter_vars").array_index(index).attr("dom")
        dom = axis.dom
        assert dom is not None
        if is_zero(dom.min):
            extent = d.expr(dom.extent, path.attr("extent"))
        else:
            start = d.expr(dom.min, path.attr("min"))
            extent = TupleDoc([start, end_of(dom.min, dom.extent, path, d)])
        args = [extent] if self.values[index] is None else [extent, self._value(index)]
        rhs = d.tir("axis").attr(AXIS_NAMES[axis.iter_type]).call(*args)
        self.frame.stmts.append(AssignDoc(define_var(axis.var, self.frame, d), rhs))


def _loops(d: IRDocsifier) -> dict[Var, s.For]:
    """The loops around, by their variables."""
    loops: dict[Var, s.For] = {}
    for frame in d.frames:
        loop = frame.node
        while isinstance(loop, s.For):
            loops.setdefault(loop.loop_var, loop)
            loop = loop.body
    return loops
