"""Turn asynchronous copies of blocks of memory into calls of a device's engine for them (DMA).

attr "async_commit_queue_scope" 0:        ->    dma_copy(0, address_of(S[0]), address_of(A[i * 128]), 512, bypass)
    attr "async_scope":
        for j in range(128):
            S[j] = A[i * 128 + j]
attr "async_wait_queue_scope" 0:          ->    dma_wait(0, 0)
    attr "async_wait_inflight_count" 0:         B[i] = S[0]
        B[i] = S[0]

A queue counts what is committed: several copies of one commit stand between dma_start_group and dma_end_group. Statements that
are no such copies keep their attributes.
"""

from __future__ import annotations

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.pass_context import PassContext, register_pass_config
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.analysis.identify_memcpy import copied
from tvm.tir.builtin import address_of, intrinsic_call
from tvm.tir.expr import INT32, BufferLoad, Call, IntImm, IterVar, Range, const
from tvm.tir.function import PrimFunc
from tvm.tir.intrinsics import INTRINSICS
from tvm.tir.stmt import AttrStmt, BufferStore, Evaluate, For, ForKind, Stmt, seq
from tvm.tir.transform.common import PrimFuncPass, contains, prim_func_pass

COMMIT, SCOPE = "async_commit_queue_scope", "async_scope"
WAIT, IN_FLIGHT = "async_wait_queue_scope", "async_wait_inflight_count"
BYPASS_CACHE = "tir.experimental_dma_bypass_cache"
register_pass_config(BYPASS_CACHE, bool)  # LowerAsyncDMA: copies leave out the device's cache
DMA_COPY = INTRINSICS["dma_copy"]


class CopyIssuer(Rewriter):
    """Replaces the copies of each commit, and remembers the queues that they are in."""

    def __init__(self, bypass_cache: bool) -> None:
        self.bypass_cache = const(bypass_cache, "bool")
        self.analyzer = Analyzer()
        self.queue: int | None = None  # of the commit around
        self.is_async = False
        self.queues: dict[int, bool] = {}  # with copies, and whether they are all that is in it

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key == "thread_extent" and isinstance(attr.node, IterVar):
            self.analyzer.bind(attr.node.var, Range(attr.value), True)
        if attr.attr_key == COMMIT:
            return self._commit(attr)
        if attr.attr_key == SCOPE:
            outer, self.is_async = self.is_async, True
            body: Stmt = self.visit(attr.body)
            self.is_async = outer
            return body if self.queue is not None and is_issued(body) else attr.replace(body=body)
        return self.rewrite_children(attr)

    def _commit(self, attr: AttrStmt) -> Stmt:
        queue = queue_of(attr)
        outer, self.queue = self.queue, queue
        body: Stmt = self.visit(attr.body)
        self.queue = outer
        if not contains(body, is_copy):
            return attr if body is attr.body else attr.replace(body=body)
        is_whole = is_issued(body)
        self.queues[queue] = self.queues.get(queue, True) and is_whole
        if not is_copy_alone(body):
            start, end = [
                Evaluate(intrinsic_call(INT32, f"dma_{name}_group", [const(queue, INT32)]))
                for name in ("start", "end")
            ]
            body = seq([start, body, end])
        return body if is_whole else attr.replace(body=body)

    def visit_for(self, loop: For) -> Stmt:
        if self.queue is not None and self.is_async and loop.kind is not ForKind.THREAD_BINDING:
            if (issued := self._issued(loop, self.queue)) is not None:
                return issued
        self.analyzer.bind(loop.loop_var, Range.from_min_extent(loop.min, loop.extent), True)
        return self.rewrite_children(loop)

    def _issued(self, loop: For, queue: int) -> Stmt | None:
        """The call for loops that copy one range of a flat buffer to another."""
        found = copied(loop, self.analyzer)
        if isinstance(found, str) or any([len(region.region) != 1 for region in found]):
            return None
        source, target = found
        ends = [
            address_of(BufferLoad(region.buffer, (region.region[0].min,)))
            for region in (target, source)
        ]
        size = op.multiply(target.region[0].extent, target.buffer.dtype.itemsize)
        args: list[PrimExpr] = [const(queue, INT32), *ends, size, self.bypass_cache]
        return Evaluate(intrinsic_call(INT32, "dma_copy", args))


class WaitLowerer(Rewriter):
    """Makes calls of the waits for queues that copies are in."""

    def __init__(self, queues: dict[int, bool]) -> None:
        self.queues = queues

    def visit_attr_stmt(self, attr: AttrStmt) -> Stmt:
        if attr.attr_key != WAIT or (queue := queue_of(attr)) not in self.queues:
            return self.rewrite_children(attr)
        count = attr.body
        if not isinstance(count, AttrStmt) or count.attr_key != IN_FLIGHT:
            raise LoweringError(
                f"LowerAsyncDMA requires {IN_FLIGHT} in {WAIT}, which says how much may be left, "
                f"got {type(count).__name__}",
                at=attr,
            )
        wait = Evaluate(
            intrinsic_call(INT32, "dma_wait", [const(queue, INT32), self.visit(count.value)])
        )
        if self.queues[queue]:
            return seq([wait, self.visit(count.body)])
        # what else is in the queue is waited for by other means
        return seq([wait, self.rewrite_children(attr)])


def queue_of(attr: AttrStmt) -> int:
    """The number of the queue that an attribute names."""
    if not isinstance(attr.value, IntImm):
        raise LoweringError(
            f"LowerAsyncDMA requires a constant queue in {attr.attr_key}, got {attr.value}", at=attr
        )
    return attr.value.value


def is_copy(node: object) -> bool:
    """Whether a node is the call of a copy."""
    return isinstance(node, Call) and node.op is DMA_COPY


def is_copy_alone(stmt: Stmt) -> bool:
    """Whether a statement issues one copy, each time it runs."""
    while isinstance(stmt, AttrStmt):
        stmt = stmt.body
    return isinstance(stmt, Evaluate) and is_copy(stmt.value)


def is_issued(stmt: Stmt) -> bool:
    """Whether nothing is left in a statement that could run asynchronously by other means."""
    return contains(stmt, is_copy) and not contains(stmt, _is_other_work)


def _is_other_work(node: object) -> bool:
    return type(node) is BufferStore or (type(node) is Evaluate and not is_copy(node.value))


@prim_func_pass("tir.LowerAsyncDMA")
def lower_async_dma(func: PrimFunc) -> PrimFunc:
    """Issue asynchronous copies to a device's engine, and wait for it."""
    issuer = CopyIssuer(PassContext.current().get(BYPASS_CACHE, False))
    body: Stmt = issuer.visit(func.body)
    return func.with_body(WaitLowerer(issuer.queues).visit(body)) if issuer.queues else func


def LowerAsyncDMA() -> PrimFuncPass:
    """Issue asynchronous copies to a device's engine, and wait for it.

    Returns
    -------
    tvm.transform.Pass
        Looks for ``async_commit_queue_scope`` and ``async_scope``, as ``InjectSoftwarePipeline`` leaves them. The
        option ``tir.experimental_dma_bypass_cache`` becomes the last argument of each copy.
    """
    return lower_async_dma.factory()
