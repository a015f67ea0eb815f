"""Read what goes to shared memory into registers first, by loops of their own.

for t in thread_binding(8, "threadIdx.x"):           for t in thread_binding(8, "threadIdx.x"):
    for j in range(4):                                   for j in range(4):
        with block():  # annotated            ->             mine[j] = A[t * 4 + j]
            S[t * 4 + j] = A[t * 4 + j]              for t in thread_binding(8, "threadIdx.x"):
                                                         for j in range(4):
                                                             S[t * 4 + j] = mine[j]

The reads can then run ahead of the writes, as a stage of a software pipeline. Blocks are annotated by
``tir.manifest_shared_memory_local_stage``.
"""

from __future__ import annotations

from typing import Any

from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.buffer import decl_buffer
from tvm.tir.expr import BufferLoad, IterVar, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Block, BlockRealize, BufferStore, For, ForKind, SeqStmt, Stmt
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import TRUE, comes_from_te, fresh, is_const, prim_func_pass

KEY = "tir.manifest_shared_memory_local_stage"


class StageInserter(Rewriter):
    """Puts two nests of loops in the place of the one around an annotated block."""

    def visit_for(self, loop: For) -> Stmt:
        loops, realize = _chain(loop)
        return self.rewrite_children(loop) if realize is None else _staged(loops, realize)

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        return _staged([], realize) if _is_marked(realize) else self.rewrite_children(realize)


def _is_marked(realize: BlockRealize) -> bool:
    mark = realize.block.annotations.get(KEY, 0)
    return not is_const(mark, 0) if isinstance(mark, PrimExpr) else bool(mark)


def _chain(loop: For) -> tuple[list[For], BlockRealize | None]:
    """Loops directly inside each other, and the annotated block inside them."""
    loops = [loop]
    body = loop.body
    while isinstance(body, For):
        loops.append(body)
        body = body.body
    return loops, body if isinstance(body, BlockRealize) and _is_marked(body) else None


def _staged(loops: list[For], realize: BlockRealize) -> Stmt:
    block = realize.block
    store = block.body
    if not isinstance(store, BufferStore) or not store.buffer.scope().startswith("shared"):
        raise LoweringError(
            "ManifestSharedMemoryLocalStage needs a block that stores an element to shared memory, "
            f"got {block.name_hint}",
            at=realize,
        )
    own = [loop for loop in loops if loop.kind is not ForKind.THREAD_BINDING]
    shape = [loop.extent for loop in own] or [const(1, "int32")]
    mine = decl_buffer(shape, store.buffer.dtype, f"{store.buffer.name}_local", scope="local")
    place = [op.subtract(loop.loop_var, loop.min) for loop in own] or [const(0, "int32")]
    local = BufferLoad(mine, tuple(place))
    first = _with_body(realize, BufferStore(mine, store.value, local.indices), "_local")
    second = _with_body(realize, store.replace(value=local), "")
    parts = SeqStmt((_nested(loops, first), _anew(_nested(loops, second))))
    return BlockRealize((), TRUE, Block((), (), (), "", parts, None, [mine]))


def _with_body(realize: BlockRealize, body: Stmt, suffix: str) -> BlockRealize:
    """The block with another body; it reads and writes other memory than before."""
    block = realize.block
    marks = {key: value for key, value in block.annotations.items() if key != KEY}
    new = Block(
        block.iter_vars, (), (), f"{block.name_hint}{suffix}", body, None, block.alloc_buffers,
        block.match_buffers, marks,
    )  # fmt: skip
    return realize.replace(block=new)


def _nested(loops: list[For], body: Stmt) -> Stmt:
    for loop in reversed(loops):
        body = loop.replace(body=body)
    return body


def _anew(nest: Stmt) -> Stmt:
    """The same loops over variables of their own, axes of the block among them."""
    if isinstance(nest, For):
        var = fresh(nest.loop_var)
        body = _anew(substitute(nest.body, {nest.loop_var: var}))
        return nest.replace(loop_var=var, body=body)
    assert isinstance(nest, BlockRealize)
    axes: list[Any] = []
    values: dict[Var, Any] = {}
    for axis in nest.block.iter_vars:
        values[axis.var] = fresh(axis.var)
        axes.append(IterVar(axis.dom, values[axis.var], axis.iter_type, axis.thread_tag))
    block = substitute(nest.block.body, values)
    return nest.replace(block=nest.block.replace(iter_vars=tuple(axes), body=block))


@prim_func_pass("tir.ManifestSharedMemoryLocalStage")
def manifest_shared_memory_local_stage(func: PrimFunc) -> PrimFunc:
    """Insert the stages that annotations ask for."""
    return func if comes_from_te(func) else func.with_body(StageInserter().visit(func.body))


ManifestSharedMemoryLocalStage = manifest_shared_memory_local_stage.factory
