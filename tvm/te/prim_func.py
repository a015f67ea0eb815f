"""Operations as a function in block form: one block a compute, with its reads and writes.

C[i] = sum(A[i, k])    ->    for i, k in grid(n, m):
                                 with block("C"):
                                     v_i, v_k = remap("SR", [i, k])
                                     with init(): C[v_i] = 0
                                     C[v_i] = C[v_i] + A[v_i, v_k]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.arith import Analyzer
from tvm.error import LoweringError
from tvm.ir.expr import PrimExpr
from tvm.ir.visitor import Rewriter
from tvm.support.dtype import dtype as as_dtype
from tvm.support.naming import UniqueNames
from tvm.support.scope import deep
from tvm.tir.analysis.block_access_region import AccessFinder, merged
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.expr import (
    BOOL,
    INT32,
    BufferLoad,
    IntImm,
    IterVar,
    IterVarType,
    ProducerLoad,
    Range,
    Reduce,
    Var,
    const,
)
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import (
    Block,
    BlockRealize,
    BufferRegion,
    BufferStore,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    point_region,
    seq,
)
from tvm.tir.stmt_functor import Substituter

from .declare import extern
from .index_dtype import with_index_dtype
from .schedule.bind_buffer import bind_placeholder
from .schedule.graph import create_read_graph, post_dfs_order
from .tensor import ComputeOp, ExternOp, Operation, PlaceholderOp, Tensor

# tensors whose layout a schedule may choose
LAYOUT_FREE = "layout_free_placeholders"


class UnsupportedOperationError(LoweringError, TypeError):
    """An operation has no form as a block."""


@deep
def create_prim_func(ops: Sequence[Any], index_dtype_override: str | None = None) -> PrimFunc:
    """The function of a graph of operations, in block form.

    Parameters
    ----------
    ops : list of Tensor or Var
        The parameters: inputs and outputs.
    index_dtype_override : str, optional
        The dtype of all indices, shapes and loops, such as ``int64``.
    """
    params = list(ops) if isinstance(ops, (list, tuple)) else [ops]
    for param in params:
        if not isinstance(param, (Tensor, Var)):
            raise LoweringError(
                f"create_prim_func requires tensors and variables, got a {type(param).__name__}"
            )
    func = _Builder(params).build()
    if index_dtype_override is None:
        return func
    return with_index_dtype(func, as_dtype(index_dtype_override))


def extern_primfunc(input_tensors: Sequence[Tensor], primfunc: PrimFunc, **kwargs: Any) -> Any:
    """A tensor computed by the body of a function, whose last parameters are the outputs.

    Parameters
    ----------
    input_tensors : list of Tensor
        One for each of the first parameters.
    primfunc : PrimFunc
        The function; all its parameters are buffers.
    kwargs
        As for :func:`tvm.te.extern`.
    """
    buffers = [primfunc.buffer_map[param] for param in primfunc.params]
    count = len(input_tensors)
    if len(buffers) <= count:
        raise LoweringError(
            f"extern_primfunc requires a function of more than {count} buffers, "
            f"got {len(buffers)}: the inputs come first, then the outputs"
        )
    ins, outs = buffers[:count], buffers[count:]
    return extern(
        [buffer.shape for buffer in outs],
        list(input_tensors),
        lambda _ins, _outs: primfunc.body,
        dtype=[buffer.dtype for buffer in outs],
        in_buffers=ins,
        out_buffers=outs,
        **kwargs,
    )


class _Builder:
    """Collects the blocks of all operations, and the buffers between them."""

    def __init__(self, params: list[Any]) -> None:
        self.params = params
        self.names = UniqueNames()
        self.buffers: dict[Tensor, Buffer] = {}
        self.layout_free: set[int] = set()  # positions of parameters

    def build(self) -> PrimFunc:
        tensors = [param for param in self.params if isinstance(param, Tensor)]
        outputs = [tensor.op for tensor in tensors]
        ops = post_dfs_order(outputs, create_read_graph(outputs))
        self.declare(tensors, ops)
        for op in ops:
            _check_kind(op)
        body = seq(
            [
                self.statement_of(op)
                for op in ops
                if not isinstance(op, PlaceholderOp) or self.check_input(op)
            ]
        )
        inside = [
            self.buffer_of(tensor)
            for op in ops
            if not isinstance(op, PlaceholderOp)
            for tensor in op.outputs
            if not any(tensor is param for param in tensors)
        ]
        if inside or not _is_root(body):
            root = Block((), (), (), "root", body, None, inside)
            body = BlockRealize((), const(True, BOOL), root)
        params = [p if isinstance(p, Var) else self.buffers[p] for p in self.params]
        attrs: dict[str, Any] = {"global_symbol": "main", "tir.noalias": True}
        if self.layout_free:
            attrs["layout_free_buffers"] = sorted(self.layout_free)
        return PrimFunc(params, body, None, None, attrs)

    def declare(self, params: Sequence[Tensor], ops: Sequence[Operation]) -> None:
        """The buffers of parameters, those that extern operations declare for them among these.

        An offset that such a declaration leaves open comes with the argument; a buffer between
        operations has none.
        """
        externs = [op for op in ops if isinstance(op, ExternOp)]
        for placeholder, tensor in [pair for op in externs for pair in _placeholders(op)]:
            is_param = any([tensor is param for param in params])
            if is_param or not isinstance(placeholder.elem_offset, Var):
                self.buffers.setdefault(tensor, placeholder)
        for tensor in params:
            if tensor not in self.buffers:
                self.buffers[tensor] = decl_buffer(tensor.shape, tensor.dtype, _plain(tensor.name))

    def check_input(self, op: PlaceholderOp) -> bool:
        """Every input has to be a parameter; it needs no statement."""
        if op.output(0) not in self.buffers:
            raise LoweringError(
                f"create_prim_func requires every input among its parameters, got none for "
                f"{op.name}",
                hint=f"add {op.name} to the list",
            )
        return False

    def buffer_of(self, tensor: Tensor) -> Buffer:
        if (buffer := self.buffers.get(tensor)) is None:
            buffer = decl_buffer(tensor.shape, tensor.dtype, _plain(tensor.name))
            self.buffers[tensor] = buffer
        return buffer

    def statement_of(self, op: Any) -> Stmt:
        if isinstance(op, ExternOp):
            return self.extern_block(op)
        if any(_is_empty(iv) for iv in op.reduce_axis):
            return self.identity_blocks(op)
        return self.loop_nest(op)

    def loop_nest(self, op: ComputeOp) -> Stmt:
        """One block of a reduction or of one output, one for each of several outputs."""
        loops = [Var(iv.var.name, iv.var.dtype) for iv in op.root_iter_vars()]
        # the rows of a reduction may be of different lengths
        at_loops = {iv.var: var for iv, var in zip(op.root_iter_vars(), loops, strict=True)}
        domains = [self._domain(iv, at_loops) for iv in op.root_iter_vars()]
        every = list(range(op.num_outputs))
        parts = [every] if isinstance(op.body[0], Reduce) else [[index] for index in every]
        stmt = seq([self.compute_block(op, part, loops, domains) for part in parts])
        for loop, domain in zip(reversed(loops), reversed(domains), strict=True):
            stmt = For(loop, domain.min, domain.extent, ForKind.SERIAL, stmt)
        return stmt

    def compute_block(
        self, op: ComputeOp, outputs: list[int], loops: list[Var], domains: list[Range]
    ) -> Stmt:
        axes = [
            IterVar(domain, Var(f"v_{iv.var.name}", iv.var.dtype), iv.iter_type)
            for iv, domain in zip(op.root_iter_vars(), domains, strict=True)
        ]
        values: list[PrimExpr] = list(loops)
        at = {old.var: new.var for old, new in zip(op.root_iter_vars(), axes, strict=True)}
        indices = tuple([at[iv.var] for iv in op.axis])
        buffers = [self.buffer_of(op.output(index)) for index in outputs]
        if not axes:
            unit = Range.from_min_extent(const(0, INT32), const(1, INT32))
            axes, values = [IterVar(unit, Var("vi", INT32), IterVarType.DataPar)], [const(0, INT32)]
        loads = _TensorLoads(self.buffer_of, at)
        analyzer = Analyzer()
        first = op.body[0]
        init: Stmt | None = None
        if isinstance(first, Reduce):
            start = [loads.visit(v) for v in first.init or first.combiner.identity_element]
            init = _stores(buffers, start, indices)
            body = _update(op, first, buffers, indices, loads)
        else:
            values_of = [analyzer.simplify(loads.visit(op.body[index])) for index in outputs]
            body = _stores(buffers, values_of, indices)
        block = Block(
            axes, self.regions_read([init, body], buffers), [point_region(b, indices) for b in buffers],
            self.names.fresh(_plain(op.output(outputs[0]).name if len(outputs) == 1 else op.name)),
            body, init, None, None, self.annotations_of(op),
        )  # fmt: skip
        return BlockRealize(tuple(values), const(True, BOOL), block)

    def regions_read(
        self, stmts: Sequence[Stmt | None], written: Sequence[Buffer]
    ) -> list[BufferRegion]:
        """What the statements read; a reduction's own result, which its init provides, is left out."""
        finder = AccessFinder({buffer.data: buffer for buffer in self.buffers.values()})
        for stmt in stmts:
            if stmt is not None:
                finder.visit(stmt)
        for buffer in written:
            finder.reads.pop(buffer, None)
        return merged(finder.regions(finder.reads), finder.whole())

    def _domain(self, iv: IterVar, loops: dict[Var, Var]) -> Range:
        assert iv.dom is not None
        if isinstance(iv.dom.extent, (IntImm, Var)):
            return iv.dom
        loads = _TensorLoads(self.buffer_of, loops)
        return Range.from_min_extent(loads.visit(iv.dom.min), loads.visit(iv.dom.extent))

    def identity_blocks(self, op: ComputeOp) -> Stmt:
        """A reduction of nothing: a block's init would run with its first iteration only."""
        reduce: Any = op.body[0]
        values = reduce.init or reduce.combiner.identity_element
        plain = ComputeOp(op.name, op.tag, op.attrs, op.axis, values)
        for old, new in zip(op.outputs, plain.outputs, strict=True):
            self.buffers[new] = self.buffer_of(old)
        return self.statement_of(plain)

    def extern_block(self, op: ExternOp) -> Stmt:
        """What the body touches is its own matter: the block declares no regions."""
        body: Stmt = op.body
        for placeholder, tensor in _placeholders(op):
            if (buffer := self.buffer_of(tensor)) is not placeholder:
                body = bind_placeholder(body, placeholder, buffer)
        name = self.names.fresh(_plain(op.name))
        block = Block((), (), (), name, body, None, None, None, self.annotations_of(op))
        return BlockRealize((), const(True, BOOL), block)

    def annotations_of(self, op: Operation) -> dict[str, Any]:
        """The attributes of an operation that say something of its computation."""
        # a workload names the task that the operation was made for
        found = {name: value for name, value in op.attrs.items() if name != "workload"}
        inside = []
        for tensor in found.pop(LAYOUT_FREE, ()):
            positions = [i for i, param in enumerate(self.params) if param is tensor]
            self.layout_free.update(positions)
            inside += [] if positions else [self.buffer_of(tensor)]
        return {**found, LAYOUT_FREE: inside} if inside else found


def _check_kind(op: Operation) -> None:
    """Scans have no block form."""
    if not isinstance(op, (ComputeOp, ExternOp, PlaceholderOp)):
        raise UnsupportedOperationError(
            f"Unsupported Operation: {type(op).__name__}. create_prim_func requires computes and "
            f"externs, got {op.name}"
        )


def _placeholders(op: ExternOp) -> list[tuple[Buffer, Tensor]]:
    """The buffers that stand for the outputs and inputs in the body of an extern operation."""
    return [
        *zip(op.output_placeholders, op.outputs, strict=True),
        *zip(op.input_placeholders, op.inputs, strict=True),
    ]


def _is_root(body: Stmt) -> bool:
    """Whether the body is a block without axes: an extern operation alone, as in scripts."""
    return isinstance(body, BlockRealize) and not body.block.iter_vars


def _is_empty(iv: IterVar) -> bool:
    extent = None if iv.dom is None else iv.dom.extent
    return isinstance(extent, IntImm) and extent.value == 0


def _plain(name: str) -> str:
    """A name without dots."""
    return name.replace(".", "_")


class _TensorLoads(Rewriter):
    """Reads tensors from their buffers, with the block's axes as indices."""

    def __init__(self, buffer_of: Any, axes: dict[Var, Var]) -> None:
        self.buffer_of = buffer_of
        self.axes = axes

    def visit_var(self, var: Var) -> PrimExpr:
        return self.axes.get(var, var)

    def visit_producer_load(self, load: ProducerLoad) -> PrimExpr:
        load = self.rewrite_children(load)
        return BufferLoad(self.buffer_of(load.producer), load.indices)


def _stores(
    buffers: Sequence[Buffer], values: Sequence[PrimExpr], indices: tuple[PrimExpr, ...]
) -> Stmt:
    return seq([BufferStore(b, v, indices) for b, v in zip(buffers, values, strict=True)])


def _update(
    op: ComputeOp,
    reduce: Reduce,
    buffers: Sequence[Buffer],
    indices: tuple[PrimExpr, ...],
    loads: _TensorLoads,
) -> Stmt:
    combiner = loads.visit(reduce.combiner)
    before = [BufferLoad(buffer, indices) for buffer in buffers]
    sources = [loads.visit(source) for source in reduce.source]
    operands = dict(zip((*combiner.lhs, *combiner.rhs), (*before, *sources), strict=True))
    rewriter = Substituter(operands)
    results = [rewriter.visit(result) for result in combiner.result]
    if len(results) == 1:
        body = _stores(buffers, results, indices)
    else:
        names = [Var(f"v_{_plain(t.name)}", t.dtype) for t in op.outputs]
        body = _stores(buffers, names, indices)
        for name, result in zip(reversed(names), reversed(results), strict=True):
            body = LetStmt(name, result, body)
    condition = loads.visit(reduce.condition)
    if isinstance(condition, IntImm) and condition.value:
        return body
    return IfThenElse(condition, body, None)
