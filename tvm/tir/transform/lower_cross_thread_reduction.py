"""Turn blocks that reduce by loops over threads into what each thread does and a reduction over all.

for tx in thread_binding(8, "threadIdx.x"):          for tx in thread_binding(8, "threadIdx.x"):
    for k in range(4):                                   block: in_thread[0] = 0
        with block(vi = i, vk = k * 8 + tx):             for k in range(4):
            init: B[vi] = 0                   ->             block: in_thread[0] += A[i, k * 8 + tx]
            B[vi] = B[vi] + A[vi, vk]                    block: tvm_thread_allreduce(1, in_thread[0], True,
                                                                                     cross_thread[0], tx)
                                                         block where tx == 0: B[i] = cross_thread[0]

Where a thread has one value alone, that is what is reduced. Results in local memory are written by all
threads; blocks that read them outside of the loops over those threads are put into such loops.
"""

from __future__ import annotations

from collections.abc import Sequence

from tvm.arith.pattern import conjuncts
from tvm.error import IllFormedError
from tvm.ir.expr import PrimExpr
from tvm.ir.structural import structural_equal
from tvm.ir.visitor import Rewriter
from tvm.tir import op
from tvm.tir.analysis.reducers import NoReducerError, Reduction, reduction_of
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import tvm_thread_allreduce
from tvm.tir.expr import BufferLoad, CommReducer, IterVar, Range, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.math_op import reinterpret
from tvm.tir.stmt import (
    AttrStmt,
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    Stmt,
    seq,
)
from tvm.tir.stmt_functor import substitute
from tvm.tir.transform.common import TRUE, comes_from_te, prim_func_pass, variables_of

ZERO = const(0, "int32")


class CrossThreadLowerer(Rewriter):
    """Rewrites such blocks, with the loops directly around them that they reduce by."""

    def __init__(self) -> None:
        self.loops: list[For] = []  # in the block around, from the outermost
        self.buffers: list[Buffer] = []  # that the block around allocates for reductions
        # the threads that reduced what is in a buffer of local memory
        self.reduced_by: dict[Buffer, tuple[For, ...]] = {}
        self.open_threads: list[str] = []

    def visit_block(self, block: Block) -> Stmt:
        loops, buffers = self.loops, self.buffers
        self.loops, self.buffers = [], []
        new = self.rewrite_children(block)
        if self.buffers:
            new = new.replace(alloc_buffers=(*new.alloc_buffers, *self.buffers))
        self.loops, self.buffers = loops, buffers
        return new

    def visit_for(self, loop: For) -> Stmt:
        chain, realize = _chain(loop)
        if realize is not None and loop.loop_var in _reducing_variables(realize):
            lowered = self._lowered(realize, chain)
            if lowered is not None:
                return lowered
        thread = loop.thread_binding
        self.loops.append(loop)
        self.open_threads.append("" if thread is None else thread.thread_tag)
        new = self.rewrite_children(loop)
        self.open_threads.pop()
        self.loops.pop()
        return new

    def visit_block_realize(self, realize: BlockRealize) -> Stmt:
        lowered = self._lowered(realize, [])
        if lowered is not None:
            return lowered
        new = self.rewrite_children(realize)
        return self._in_threads(new)

    def _lowered(self, realize: BlockRealize, chain: Sequence[For]) -> Stmt | None:
        """What a block with the loops directly around it becomes; None if no threads share its work."""
        reduced = _reducing_variables(realize)
        if realize.block.init is None or not reduced:
            return None
        loops = [loop for loop in (*self.loops, *chain) if loop.loop_var in reduced]
        threads = [loop for loop in loops if loop.kind is ForKind.THREAD_BINDING]
        if not threads:
            return None
        _check(realize, loops, threads, [*self.loops, *chain])
        try:
            reduction = reduction_of(realize.block)
        except NoReducerError as reason:
            raise IllFormedError(
                f"LowerCrossThreadReduction needs a known combination: {reason}", at=realize.block
            ) from None
        part = CrossThreadReduction(realize, reduction, loops, threads)
        self.buffers += [*part.totals, *part.parts]
        for buffer in reduction.buffers:
            if buffer.scope() == "local":
                self.reduced_by[buffer] = tuple(threads)
        own = [loop for loop in chain if loop.kind is not ForKind.THREAD_BINDING]
        body = part.build(own)
        for loop in reversed(chain):
            if loop.kind is ForKind.THREAD_BINDING:
                body = loop.replace(body=body)
        return body

    def _in_threads(self, realize: BlockRealize) -> Stmt:
        """A block that reads what threads reduced, in loops over them if it is in none."""
        missing: dict[str, For] = {}
        for region in realize.block.reads:
            for loop in self.reduced_by.get(region.buffer, ()):
                assert loop.thread_binding is not None
                if loop.thread_binding.thread_tag not in self.open_threads:
                    missing[loop.thread_binding.thread_tag] = loop
        if not missing:
            return realize
        variables = [Var(_thread_name(tag), loop.loop_var.dtype) for tag, loop in missing.items()]
        predicate = realize.predicate
        if any([region.buffer.scope() != "local" for region in realize.block.writes]):
            predicate = op.all(predicate, *[op.equal(var, 0) for var in variables])
        body: Stmt = realize.replace(predicate=predicate)
        for var, loop in zip(variables, missing.values(), strict=True):
            binding = loop.thread_binding
            assert binding is not None
            thread = binding.replace(var=binding.var.replace(name=binding.var.name))
            body = For(var, loop.min, loop.extent, ForKind.THREAD_BINDING, body, thread)
        return body


def _thread_name(tag: str) -> str:
    return f"t{tag[-1]}"


def _chain(loop: For) -> tuple[list[For], BlockRealize | None]:
    """Loops directly inside each other, and the block inside them."""
    chain = [loop]
    body = loop.body
    while isinstance(body, For):
        chain.append(body)
        body = body.body
    return chain, body if isinstance(body, BlockRealize) else None


def _reducing_variables(realize: BlockRealize) -> dict[Var, None]:
    """The variables that the values of a block's reduction axes depend on."""
    found: dict[Var, None] = {}
    for axis, value in zip(realize.block.iter_vars, realize.iter_values, strict=True):
        if axis.iter_type is IterVar.CommReduce:
            found |= variables_of(value)
    return found


def _check(
    realize: BlockRealize, loops: Sequence[For], threads: Sequence[For], around: Sequence[For]
) -> None:
    """Reject loops that can't be reduced by."""
    block = realize.block
    for loop in threads:
        assert loop.thread_binding is not None
        if not loop.thread_binding.thread_tag.startswith("threadIdx"):
            raise IllFormedError(
                "LowerCrossThreadReduction needs reductions by threads of one block, got "
                f"{loop.thread_binding.thread_tag}",
                at=block,
            )
    first = [loop is loops[0] for loop in around].index(True)
    for loop in around[first:]:
        if not any([loop is reducing for reducing in loops]):
            raise IllFormedError(
                "LowerCrossThreadReduction needs loops of the reduction inside those of its "
                f"results, got {loop.loop_var.name} inside {loops[0].loop_var.name}",
                at=block,
            )


class CrossThreadReduction:
    """One block that threads reduce together, each of them a part."""

    def __init__(
        self,
        realize: BlockRealize,
        reduction: Reduction,
        loops: Sequence[For],
        threads: Sequence[For],
    ) -> None:
        self.realize, self.reduction, self.threads = realize, reduction, threads
        self.reduced = {loop.loop_var: None for loop in loops}
        always = structural_equal(realize.predicate, TRUE)
        has_parts = len(threads) < len(loops) or not always
        self.totals = [_local("cross_thread", buffer) for buffer in reduction.buffers]
        self.parts = [_local("in_thread", b) for b in reduction.buffers] if has_parts else []

    def build(self, own: Sequence[For]) -> Stmt:
        """What each thread does, in given loops, what all do, and what stores the result."""
        steps: list[Stmt] = []
        if self.parts:
            part: Stmt = self._in_thread()
            for loop in reversed(own):
                part = loop.replace(body=part)
            steps = [self._initial(), part]
        return seq([*steps, self._cross_thread(), self._write_back()])

    def _named(self, role: str) -> str:
        return f"{self.realize.block.name_hint}_{role}"

    def _initial(self) -> Stmt:
        stores = [
            BufferStore(part, value, (ZERO,))
            for part, value in zip(self.parts, self.reduction.initial, strict=True)
        ]
        writes = [_element(part) for part in self.parts]
        return BlockRealize(
            (), TRUE, Block((), (), writes, self._named("in_thread_init"), seq(stores))
        )

    def _in_thread(self) -> Stmt:
        block = self.realize.block
        parts = dict(zip(self.reduction.buffers, self.parts, strict=True))
        body = _Redirection(parts).visit(block.body)
        writes = tuple([_element(parts[region.buffer]) for region in block.writes])
        new = block.replace(
            name_hint=self._named("in_thread"), body=body, init=None, writes=writes,
        )  # fmt: skip
        return self.realize.replace(block=new)

    def _cross_thread(self) -> Stmt:
        block, realize = self.realize.block, self.realize
        axes: list[IterVar] = []
        values: tuple[PrimExpr, ...] = ()
        if self.parts:
            given: list[PrimExpr] = [BufferLoad(part, (ZERO,)) for part in self.parts]
            reads = tuple([_element(part) for part in self.parts])
        else:
            axes, renamed = _renamed(block.iter_vars)
            values = realize.iter_values
            given = [substitute(value, renamed) for value in self.reduction.added]
            reads = tuple([substitute(region, renamed) for region in block.reads])
        call = tvm_thread_allreduce(
            const(len(given), "uint32"), *given, TRUE,
            *[BufferLoad(total, (ZERO,)) for total in self.totals],
            *[loop.loop_var for loop in self.threads],
        )  # fmt: skip
        nothing = reinterpret("handle", const(0, "uint64"))
        body = AttrStmt(self._reducer(), "reduce_scope", nothing, Evaluate(call))
        writes = [_element(total) for total in self.totals]
        new = Block(axes, reads, writes, self._named("cross_thread"), body)
        return BlockRealize(values, TRUE, new)

    def _reducer(self) -> CommReducer:
        initial = self.reduction.initial
        lhs = tuple([Var(f"x{i}", value.dtype) for i, value in enumerate(initial)])
        rhs = tuple([Var(f"y{i}", value.dtype) for i, value in enumerate(initial)])
        return CommReducer(lhs, rhs, tuple(self.reduction.combine(lhs, rhs)), tuple(initial))

    def _write_back(self) -> Stmt:
        block, realize = self.realize.block, self.realize
        kept = [
            (axis, value)
            for axis, value in zip(block.iter_vars, realize.iter_values, strict=True)
            if axis.iter_type is not IterVar.CommReduce
        ]
        axes, renamed = _renamed([axis for axis, _ in kept])
        indices = tuple([substitute(index, renamed) for index in self.reduction.indices])
        stores = [
            BufferStore(buffer, BufferLoad(total, (ZERO,)), indices)
            for buffer, total in zip(self.reduction.buffers, self.totals, strict=True)
        ]
        conditions = [
            condition
            for condition in conjuncts(realize.predicate)
            if not any([var in self.reduced for var in variables_of(condition)])
        ]
        if not all([buffer.scope() == "local" for buffer in self.reduction.buffers]):
            conditions += [op.equal(loop.loop_var, loop.min) for loop in self.threads]
        new = Block(
            axes, [_element(total) for total in self.totals],
            [substitute(region, renamed) for region in block.writes], self._named("write_back"),
            seq(stores),
        )  # fmt: skip
        predicate = op.all(TRUE, *[c for c in conditions if not structural_equal(c, TRUE)])
        return BlockRealize(tuple([value for _, value in kept]), predicate, new)


class _Redirection(Rewriter):
    """Puts the only element of other buffers into the place of what is reduced to."""

    def __init__(self, parts: dict[Buffer, Buffer]) -> None:
        self.parts = parts

    def visit_buffer_load(self, load: BufferLoad) -> PrimExpr:
        part = self.parts.get(load.buffer)
        return self.rewrite_children(load) if part is None else BufferLoad(part, (ZERO,))

    def visit_buffer_store(self, store: BufferStore) -> Stmt:
        store = self.rewrite_children(store)
        part = self.parts.get(store.buffer)
        return store if part is None else BufferStore(part, store.value, (ZERO,))


def _local(role: str, buffer: Buffer) -> Buffer:
    return decl_buffer((1,), buffer.dtype, f"{role}_{buffer.name}", strides=(1,), scope="local")


def _element(buffer: Buffer) -> BufferRegion:
    return BufferRegion(buffer, (Range.from_min_extent(ZERO, const(1, "int32")),))


def _renamed(axes: Sequence[IterVar]) -> tuple[list[IterVar], dict[Var, PrimExpr]]:
    """Axes with variables of their own."""
    new = [axis.replace(var=axis.var.replace(name=axis.var.name)) for axis in axes]
    return new, {old.var: axis.var for old, axis in zip(axes, new, strict=True)}


@prim_func_pass("tir.LowerCrossThreadReduction")
def lower_cross_thread_reduction(func: PrimFunc) -> PrimFunc:
    """Lower reductions over threads in block form."""
    return func if comes_from_te(func) else func.with_body(CrossThreadLowerer().visit(func.body))


LowerCrossThreadReduction = lower_cross_thread_reduction.factory
