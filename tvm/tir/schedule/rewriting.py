"""Rewriters that primitives share. Those that change blocks say which block became which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.arith import iter_map_simplify
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support import deep
from tvm.tir import op
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import BufferLoad, Range, Var
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    MatchBufferRegion,
    Stmt,
)
from tvm.tir.stmt_functor import Substituter

from .tree import domain_of, range_of

Reuse = dict[Block, Block]


class TrackedSubstituter(Substituter):
    """Replaces variables, and notes the blocks inside that become others."""

    def __init__(self, mapping: Mapping[Var, PrimExpr], reuse: Reuse) -> None:
        super().__init__(mapping)
        self.reuse = reuse

    def visit_block(self, block: Block) -> Stmt:
        new = super().visit_block(block)
        if new is not block:
            assert isinstance(new, Block)
            self.reuse[block] = new
        return new


@deep
def substitute_tracked(stmt: Stmt, mapping: Mapping[Var, PrimExpr], reuse: Reuse) -> Stmt:
    """The statement with variables replaced; blocks that become others are added to ``reuse``."""
    result: Stmt = TrackedSubstituter(mapping, reuse).visit(stmt)
    return result


class PredicateAdder(Rewriter):
    """Adds a condition to the blocks that no other block is around."""

    def __init__(self, condition: PrimExpr) -> None:
        self.condition = condition

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        if _is_true(realize.predicate):
            return realize.replace(predicate=self.condition)
        return realize.replace(predicate=op.logical_and(realize.predicate, self.condition))


def _is_true(predicate: Any) -> bool:
    return getattr(predicate, "value", None) in (1, True)


class BindingSimplifier(Rewriter):
    """Simplifies the values of blocks' variables by what is known of the loops around them."""

    def __init__(self, domain: Mapping[Var, Range], keeps_unit_iters: bool, reuse: Reuse) -> None:
        self.domain = dict(domain)
        self.keeps_unit_iters = keeps_unit_iters
        self.reuse = reuse

    def visit_for(self, loop: For) -> Stmt:
        self.domain[loop.loop_var] = range_of(loop)
        new = self.rewrite_children(loop)
        del self.domain[loop.loop_var]
        return new

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        block = realize.block
        if not block.iter_vars:
            body = self.visit(block.body)
            if body is block.body:
                return realize
            self.reuse[block] = new = block.replace(body=body)
            return realize.replace(block=new)
        if all([type(value) is Var for value in realize.iter_values]):
            return realize
        values = iter_map_simplify(
            realize.iter_values, self.domain, realize.predicate, "surjective",
            not self.keeps_unit_iters,
        )  # fmt: skip
        if all([a is b for a, b in zip(values, realize.iter_values, strict=True)]):
            return realize
        return realize.replace(iter_values=tuple(values))


def simplify_bindings(
    stmt: Stmt, around: Sequence[StmtSRef], reuse: Reuse, keeps_unit_iters: bool = True
) -> Stmt:
    """The statement with simple values of blocks' variables, inside the loops ``around`` it."""
    result: Stmt = BindingSimplifier(domain_of(around), keeps_unit_iters, reuse).visit(stmt)
    return result


class BufferReplacer(Rewriter):
    """Puts buffers into the place of others in accesses and regions, and notes the blocks that change.

    ``index`` gives the indices of an access to a replaced buffer, from the buffer and the old indices.
    """

    def __init__(
        self,
        buffers: Mapping[Buffer, Buffer],
        reuse: Reuse | None = None,
    ) -> None:
        self.buffers = dict(buffers)
        self.reuse = {} if reuse is None else reuse

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        new = self.buffers.get(load.buffer)
        return load if new is None else load.replace(buffer=new)

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        new = self.buffers.get(store.buffer)
        return store if new is None else store.replace(buffer=new)

    def visit_buffer_region(self, region: BufferRegion) -> BufferRegion:
        region = self.rewrite_children(region)
        new = self.buffers.get(region.buffer)
        return region if new is None else region.replace(buffer=new)

    def visit_match_buffer_region(self, match: MatchBufferRegion) -> MatchBufferRegion:
        source = self.visit(match.source)
        return match if source is match.source else match.replace(source=source)

    def visit_var(self, var: Var) -> PrimExpr:
        for old, new in self.buffers.items():
            if old.data is var:
                return new.data
        return var

    def visit_block(self, block: Block) -> Stmt:
        new = self.rewrite_children(block)
        buffers = tuple([self.buffers.get(b, b) for b in block.alloc_buffers])
        if any([a is not b for a, b in zip(buffers, block.alloc_buffers, strict=True)]):
            new = new.replace(alloc_buffers=buffers)
        if new is not block:
            self.reuse[block] = new
        return new


class StmtReplacer(Rewriter):
    """Puts statements into the place of others, and notes the blocks around them that change."""

    def __init__(self, replaced: Mapping[Stmt, Stmt], reuse: Reuse) -> None:
        self.replaced = dict(replaced)
        self.reuse = reuse

    def visit_for(self, loop: For) -> Stmt:
        found = self.replaced.get(loop)
        if found is not None:
            return found
        body = self.visit(loop.body)
        return loop if body is loop.body else loop.replace(body=body)

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        found = self.replaced.get(realize)
        if found is not None:
            return found
        block = self.visit(realize.block)
        return realize if block is realize.block else realize.replace(block=block)

    def visit_block(self, block: Block) -> Stmt:
        found = self.replaced.get(block)
        if found is not None:
            return found
        body = self.visit(block.body)
        if body is block.body:
            return block
        self.reuse[block] = new = block.replace(body=body)
        return new

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        return self.replaced.get(store, store)

    def visit_prim_expr(self, expr: PrimExpr) -> PrimExpr:
        return expr


class AccessRewriter(Rewriter):
    """Rewrites loads, stores and regions of one buffer by functions, and notes the blocks that change."""

    def __init__(
        self,
        buffer: Buffer,
        load: Callable[[BufferLoad], PrimExpr],
        store: Callable[[BufferStore], Stmt],
        region: Callable[[BufferRegion], BufferRegion],
        reuse: Reuse,
    ) -> None:
        self.buffer = buffer
        self.load, self.store, self.region = load, store, region
        self.reuse = reuse

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        return self.load(load) if load.buffer is self.buffer else load

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        return self.store(store) if store.buffer is self.buffer else store

    def visit_buffer_region(self, region: BufferRegion) -> BufferRegion:
        region = self.rewrite_children(region)
        return self.region(region) if region.buffer is self.buffer else region

    def visit_match_buffer_region(self, match: MatchBufferRegion) -> MatchBufferRegion:
        source = self.visit(match.source)
        return match if source is match.source else match.replace(source=source)

    def visit_block(self, block: Block) -> Stmt:
        new = self.rewrite_children(block)
        if new is not block:
            self.reuse[block] = new
        return new
