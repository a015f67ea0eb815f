"""How blocks are written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tvm.ir.expr import PrimExpr
from tvm.tir import stmt as s
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IntImm, IterVar, Var

from .plan import same_extents
from .stmt import StmtPrinter

AXIS_NAMES = {
    IterVar.DataPar: "spatial",
    IterVar.CommReduce: "reduce",
    IterVar.Ordered: "scan",
    IterVar.DimInfo: "opaque",
}
AXIS_LETTERS = {IterVar.DataPar: "S", IterVar.CommReduce: "R"}


class BlockPrinter(StmtPrinter):
    """Writes blocks: axes, regions, annotations, buffers, the body."""

    def visit_block_realize(self, node: s.BlockRealize) -> None:
        self._block(node.block, node)

    def visit_block(self, node: s.Block) -> None:
        self._block(node, None)

    def _block(self, block: s.Block, realize: s.BlockRealize | None) -> None:
        self.line()
        rest = "" if realize is not None else ", no_realize=True"
        self.out.append(f"with {self.T}.block({json.dumps(block.name_hint)}{rest}):")
        self.indent += 1
        self.names.enter()
        self.block_contents(block, realize)
        self.names.leave()
        self.indent -= 1

    def block_contents(self, block: s.Block, realize: s.BlockRealize | None) -> None:
        """Everything inside ``with T.block``."""
        self._axes(block, realize)
        if realize is not None and not _is_true(realize.predicate):
            self.line()
            self.call("where", realize.predicate)
        for match in block.match_buffers:
            self.define_free(match.buffer)
        self._regions("reads", block.reads)
        self._regions("writes", block.writes)
        if block.annotations:
            self.line()
            self.out.append(f"{self.T}.block_attr(")
            self.value(block.annotations)
            self.out.append(")")
        for buffer in block.alloc_buffers:
            self._bind_buffer(buffer, "alloc_buffer", "")
        for match in block.match_buffers:
            source = self.text_of(self.visit, match.source)
            self._bind_buffer(match.buffer, "match_buffer", f"{source}, ")
        if block.init is not None:
            self.line()
            self.out.append(f"with {self.T}.init():")
            self.suite(block.init)
        self.body(block.body)

    def _bind_buffer(self, buffer: Buffer, function: str, first: str) -> None:
        """``A = T.alloc_buffer((16,))``"""
        self.define_free(buffer)
        name = self.define_buffer(buffer)
        self.line()
        self.out.append(f"{name} = {self.T}.{function}({first}")
        self.buffer_arguments(buffer, None)
        self.out.append(")")

    def _regions(self, function: str, regions: Sequence[s.BufferRegion]) -> None:
        self.line()
        self.call(function, *regions)

    def _axes(self, block: s.Block, realize: s.BlockRealize | None) -> None:
        values = realize.iter_values if realize is not None else [None] * len(block.iter_vars)
        pairs = list(zip(block.iter_vars, values, strict=True))
        start = 0
        while start < len(pairs):
            end = start
            while end < len(pairs) and self._is_remapped(*pairs[end]):
                end += 1
            if end - start > 0 and self.config.syntax_sugar:
                self._remap(pairs[start:end])
                start = end
            else:
                self._axis(*pairs[start])
                start += 1

    def _is_remapped(self, iter_var: IterVar, value: PrimExpr | None) -> bool:
        """Whether the axis is a loop's variable over the loop's range."""
        if not isinstance(value, Var) or iter_var.iter_type not in AXIS_LETTERS:
            return False
        loop, dom = self.loops.get(value), iter_var.dom
        return (
            loop is not None
            and dom is not None
            and iter_var.var.dtype is value.dtype
            and same_extents((loop.min, loop.extent), (dom.min, dom.extent))
        )

    def _remap(self, pairs: Sequence[tuple[IterVar, Any]]) -> None:
        letters = "".join([AXIS_LETTERS[iter_var.iter_type] for iter_var, _ in pairs])
        values = self.text_of(self.argument, [value for _, value in pairs])
        names = [self.names.define(v.var, v.var.name) for v, _ in pairs]
        self.line()
        self.out.append(f'{", ".join(names)} = {self.T}.axis.remap("{letters}", {values})')

    def _axis(self, iter_var: IterVar, value: PrimExpr | None) -> None:
        dom = iter_var.dom
        assert dom is not None
        if type(dom.min) is IntImm and dom.min.value == 0:
            extent = self.text_of(self.visit, dom.extent)
        else:
            extent = f"({self.text_of(self.slice, dom.min, dom.extent, 1, ', ')})"
        bound = self.text_of(self.visit, value) if value is not None else "None"
        name = self.names.define(iter_var.var, iter_var.var.name)
        self.line()
        kind = AXIS_NAMES[iter_var.iter_type]
        self.out.append(f"{name} = {self.T}.axis.{kind}({extent}, {bound})")


def _is_true(expr: PrimExpr) -> bool:
    return type(expr) is IntImm and expr.value == 1
