"""Gradients of tensors.

    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))
    dA, dB = te.gradient(C, [A, B], head=dC)        # dA = dC B^T, dB = A^T dC

From the output backwards, each operation adds to the adjoints of what it reads. What an element gets
is a sum over the iterations that read it; ``IterationSolver`` finds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, cast

from tvm.arith import Analyzer
from tvm.error import OpNotImplemented, TVMError
from tvm.ir import structural_equal
from tvm.ir.expr import PrimExpr
from tvm.support.scope import deep
from tvm.tir import op as tir_op
from tvm.tir.expr import (
    Add,
    CommReducer,
    IntImm,
    IterVar,
    Max,
    Min,
    Mul,
    ProducerLoad,
    Reduce,
    Var,
    const,
)
from tvm.tir.math_op import if_then_else, max_value
from tvm.tir.reduction import comm_reducer
from tvm.tir.reduction import sum as reduce_sum
from tvm.tir.stmt_functor import substitute

from ..declare import compute
from ..schedule.graph import create_read_graph, post_dfs_order
from ..tensor import ComputeOp, Operation, PlaceholderOp, Tensor
from .backward import adjoints_of_loads
from .iteration import Equation, IterationSolver


@deep
def gradient(output: Tensor, inputs: Any, head: Tensor | None = None) -> list[Tensor]:
    """Reverse-mode differentiation.

    Parameters
    ----------
    output : Tensor
        What is differentiated.
    inputs : Tensor or list of Tensor
        With respect to what.
    head : Tensor, optional
        The adjoint of ``output``, of shape ``prefix + output.shape``. Without it the results are the
        Jacobians, of shape ``output.shape + input.shape``.

    Returns
    -------
    list of Tensor
        One an input, of shape ``prefix + input.shape``.
    """
    is_list = isinstance(inputs, Iterable) and not isinstance(inputs, Tensor)
    wanted = list(inputs) if is_list else [inputs]
    for tensor in (output, *wanted):
        if not isinstance(tensor, Tensor):
            raise TVMError(f"gradient requires tensors, got a value of {type(tensor).__name__}")
    prefix = output.shape if head is None else _prefix(output, head)
    return _Gradient(output, wanted, head, prefix).run()


def _prefix(output: Tensor, head: Tensor) -> tuple[PrimExpr, ...]:
    lead = head.ndim - output.ndim
    if lead < 0 or not structural_equal(head.shape[lead:], output.shape):
        raise TVMError(
            f"gradient requires a head whose shape ends with that of the output, got "
            f"{[str(dim) for dim in head.shape]} for {[str(dim) for dim in output.shape]}"
        )
    return head.shape[:lead]


class _Gradient:
    """Collects adjoints; None stands for the identity, the adjoint of the output without head."""

    def __init__(
        self,
        output: Tensor,
        wanted: Sequence[Tensor],
        head: Tensor | None,
        prefix: Sequence[PrimExpr],
    ) -> None:
        self.output, self.wanted, self.prefix = output, wanted, tuple(prefix)
        self.terms: dict[Tensor, list[Tensor | None]] = {output: [head]}
        graph = create_read_graph([output.op])
        self.order = post_dfs_order([output.op], graph)
        # tensors on a way from the inputs to the output
        self.on_way: dict[Tensor, None] = dict.fromkeys(wanted)
        for op in self.order:
            if any(tensor in self.on_way for tensor in op.input_tensors):
                self.on_way.update(dict.fromkeys(op.outputs))

    def run(self) -> list[Tensor]:
        for op in reversed(self.order):
            sources = {t: None for t in op.input_tensors if t in self.on_way}
            for index, tensor in enumerate(op.outputs):
                if tensor in self.terms and sources:
                    self._differentiate(op, index, sources)
        return [self._result(tensor) for tensor in self.wanted]

    def _result(self, tensor: Tensor) -> Tensor:
        if tensor not in self.terms:
            shape = (*self.prefix, *tensor.shape)
            zero = const(0, tensor.dtype)
            return _compute(shape, lambda *_: zero, f"{tensor.op.name}.grad")
        total = self._adjoint(tensor)
        if total is not None:
            return total
        count = tensor.ndim
        return _compute(
            (*self.prefix, *tensor.shape),
            lambda *i: tir_op.cast(
                tir_op.all(const(True, "bool"), *map(tir_op.equal, i[:count], i[count:])),
                tensor.dtype,
            ),
            f"{tensor.op.name}.grad",
        )

    def _adjoint(self, tensor: Tensor) -> Tensor | None:
        """The sum of all that was added to the adjoint."""
        terms = self.terms[tensor]
        if len(terms) > 1:
            known = [self._materialized(tensor, term) for term in terms]
            shape = (*self.prefix, *tensor.shape)
            self.terms[tensor] = [
                _compute(
                    shape,
                    lambda *i: reduce(tir_op.add, [term(*i) for term in known]),
                    _name(tensor),
                )
            ]
        return self.terms[tensor][0]

    def _materialized(self, tensor: Tensor, term: Tensor | None) -> Tensor:
        if term is not None:
            return term
        saved, self.terms[tensor] = self.terms[tensor], [None]
        identity = self._result(tensor)
        self.terms[tensor] = saved
        return identity

    def _differentiate(self, op: Operation, index: int, sources: Mapping[Tensor, None]) -> None:
        if not isinstance(op, ComputeOp):
            if isinstance(op, PlaceholderOp):
                return
            raise OpNotImplemented(
                f"gradient requires computes between inputs and output, got {op.name}, "
                f"a {type(op).__name__}"
            )
        adjoint = self._adjoint(op.output(index))
        positions = [Var(f"p{k}", dim.dtype) for k, dim in enumerate(self.prefix)]
        axes = [iv.var for iv in op.axis]
        equations: list[Equation] = []
        seed: PrimExpr = const(1, op.output(index).dtype)
        if adjoint is None:
            equations = list(zip(axes, positions, strict=True))
        else:
            seed = adjoint(*positions, *axes)
        value, seed = _term_of(op, index, seed)
        for load, factor in adjoints_of_loads(value, seed, sources):
            term = _collect(op, load, factor, equations, positions, self.prefix)
            self.terms.setdefault(load.producer, []).append(term)  # type: ignore[arg-type]


def _name(tensor: Tensor) -> str:
    return f"{tensor.op.name}.grad"


def _compute(shape: Sequence[PrimExpr], body: Any, name: str) -> Tensor:
    names = [f"ax{k}" for k in range(len(shape))]
    tensor: Tensor = compute(shape, lambda *i: body(*i), name, varargs_names=names)
    return tensor


def _collect(
    op: ComputeOp,
    load: ProducerLoad,
    factor: PrimExpr,
    equations: Sequence[Equation],
    positions: Sequence[Var],
    prefix: Sequence[PrimExpr],
) -> Tensor:
    """What the elements of a tensor get through one load: a sum over the iterations with it."""
    tensor: Any = load.producer
    elements = [Var(f"e{k}", dim.dtype) for k, dim in enumerate(tensor.shape)]
    analyzer = Analyzer()
    shape = (*prefix, *tensor.shape)
    for var, dim in zip((*positions, *elements), shape, strict=True):
        analyzer.bind(var, tir_range(dim))
    free = {iv.var: iv.dom for iv in op.root_iter_vars() if iv.dom is not None}
    # names of their own, for the operation's axes stay in use
    renamed = {var: Var(var.name, var.dtype) for var in free}
    solver = IterationSolver(analyzer, {renamed[v]: r for v, r in free.items()})
    for new, domain in solver.free.items():
        analyzer.bind(new, domain)
    pairs = [*equations, *zip(load.indices, elements, strict=True)]
    solver.solve([(substitute(expr, renamed), value) for expr, value in pairs])

    def body(*at: Var) -> PrimExpr:
        reduced = solver.axes()
        names: dict[Var, PrimExpr] = dict(zip((*positions, *elements), at, strict=True))
        names.update(zip(solver.free, [iv.var for iv in reduced], strict=True))
        inner = Analyzer()
        for var, dim in zip(at, shape, strict=True):
            inner.bind(var, tir_range(dim))
        for iv in reduced:
            inner.bind(iv.var, iv.dom)

        def final(expr: PrimExpr) -> PrimExpr:
            solved = substitute(substitute(expr, renamed), solver.solution)
            named: PrimExpr = substitute(solved, names)
            return named

        conditions = [c for c in map(final, solver.conditions) if not inner.can_prove(c)]
        with inner.constraint_scope(tir_op.all(const(True, "bool"), *conditions)):
            value = inner.simplify(final(factor))
        if conditions:
            value = if_then_else(tir_op.all(*conditions), value, const(0, value.dtype))
        result: PrimExpr = reduce_sum(value, axis=reduced) if reduced else value
        return result

    return _compute(shape, body, _name(tensor))


def tir_range(extent: PrimExpr) -> Any:
    """From 0."""
    return IterVar((0, extent), "i", 0).dom


# ---- reductions


def _term_of(op: ComputeOp, index: int, seed: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
    """What an operation adds in one iteration, and the adjoint of that."""
    value = op.body[index]
    if not isinstance(value, Reduce):
        return value, seed
    source, kind = value.source[0], _kind_of(value.combiner)
    if value.init or kind is None:
        raise OpNotImplemented(
            f"gradient requires reductions by sum, min, max or product without init, got {op.name}",
            at=value,
        )
    if not (isinstance(value.condition, IntImm) and value.condition.value):
        seed = if_then_else(value.condition, seed, const(0, seed.dtype))
    if kind is Add:
        return source, seed
    if kind is Mul:
        return source, tir_op.multiply(seed, _product_of_others(op, value))
    chosen = tir_op.equal(_flat_index(value.axis), _choice(op, value, kind))
    return source, if_then_else(chosen, seed, const(0, seed.dtype))


def _kind_of(combiner: CommReducer) -> type | None:
    """The operator that combines two values, if it is one of which the derivative is known."""
    if len(combiner.result) != 1:
        return None
    result: Any = combiner.result[0]
    if type(result) not in (Add, Mul, Min, Max):
        return None
    operands = {id(result.a), id(result.b)}
    return type(result) if operands == {id(combiner.lhs[0]), id(combiner.rhs[0])} else None


def _flat_index(axes: Sequence[IterVar], values: Mapping[Var, PrimExpr] | None = None) -> PrimExpr:
    flat: PrimExpr = const(0, "int32")
    for iv in axes:
        assert iv.dom is not None
        value = values[iv.var] if values else iv.var
        offset = tir_op.subtract(value, iv.dom.min)
        flat = tir_op.add(tir_op.multiply(flat, iv.dom.extent), offset)
    return flat


def _renamed_axes(axes: Sequence[IterVar]) -> tuple[list[IterVar], dict[Var, PrimExpr]]:
    new = [IterVar(iv.dom, Var(iv.var.name, iv.var.dtype), iv.iter_type) for iv in axes]
    return new, {old.var: iv.var for old, iv in zip(axes, new, strict=True)}


def _choice(op: ComputeOp, reduce: Reduce, kind: type) -> PrimExpr:
    """Which iteration of a minimum or maximum gave the result: the first of several."""
    better = tir_op.greater if kind is Max else tir_op.less

    def pick(x: Any, y: Any) -> Any:
        same = tir_op.all(tir_op.equal(x[1], y[1]), tir_op.less(x[0], y[0]))
        first = tir_op.any(better(x[1], y[1]), same)
        return tir_op.select(first, x[0], y[0]), tir_op.select(first, x[1], y[1])

    def nothing(index: str, value: str) -> Any:
        del value
        return max_value(index), reduce.combiner.identity_element[0]

    reducer = comm_reducer(pick, nothing, "choice")

    def body(*at: Var) -> Any:
        axes, names = _renamed_axes(reduce.axis)
        names.update({iv.var: var for iv, var in zip(op.axis, at, strict=True)})
        source = substitute(reduce.source[0], names)
        where = substitute(reduce.condition, names)
        return reducer((_flat_index(reduce.axis, names), source), axis=axes, where=where)

    shape = [iv.dom.extent for iv in op.axis if iv.dom is not None]
    names = [f"ax{k}" for k in range(len(shape))]
    both = compute(shape, lambda *at: body(*at), f"{op.name}.choice", varargs_names=names)
    where, _ = cast("tuple[Tensor, Tensor]", both)
    chosen: PrimExpr = where(*[iv.var for iv in op.axis])
    return chosen


def _product_of_others(op: ComputeOp, reduce: Reduce) -> PrimExpr:
    """The product of all other factors: right where some are 0, unlike a quotient."""
    inner, own = len(op.axis), (*op.axis, *reduce.axis)

    def body(*at: Var) -> PrimExpr:
        axes, names = _renamed_axes(reduce.axis)
        names.update({iv.var: var for iv, var in zip(op.axis, at[:inner], strict=True)})
        differs = [
            tir_op.not_equal(names[iv.var], var)
            for iv, var in zip(reduce.axis, at[inner:], strict=True)
        ]
        where = tir_op.all(substitute(reduce.condition, names), tir_op.any(*differs))
        source = substitute(reduce.source[0], names)
        return Reduce(reduce.combiner, [source], axes, where, 0)

    shape = [tir_op.add(iv.dom.min, iv.dom.extent) for iv in own if iv.dom is not None]
    others = _compute(shape, body, f"{op.name}.others")
    return others(*[iv.var for iv in own])
