"""Intrinsics that do a row of what a compute does, made from the compute itself.

row_intrinsic(C.op, 4, 2)      # C[i, j : j + 4] (+)= A[i, k : k + 2] @ B[k : k + 2, j : j + 4]
"""

from __future__ import annotations

from typing import Any

from tvm import te, tir
from tvm.ir.visitor import Rewriter
from tvm.tir.stmt_functor import variables_of


def row_intrinsic(op: te.tensor.ComputeOp, size: int, depth: int) -> Any:
    """The intrinsic over ``size`` elements of the last axis and ``depth`` of the reduction; None if
    the elements are read at other places than those of the axes.
    """
    first = op.body[0]
    is_reduction = isinstance(first, tir.Reduce)
    e, r = tir.Var("e", "int32"), te.reduce_axis((0, depth), name="r")
    spans = {op.axis[-1].var: (e, size)}
    if is_reduction:
        if len(op.reduce_axis) > 1 or first.init or not _is_true(first.condition):
            return None
        spans[op.reduce_axis[0].var] = (r.var, depth)
    rows = _RowReader(spans)
    value = rows.visit(first.source[0] if is_reduction else first)
    axes = [iv.var for iv in op.root_iter_vars()]
    if not rows.is_plain or any(var in axes for var in variables_of(value)):
        return None

    def element(index: tir.Var) -> Any:
        at = tir.stmt_functor.substitute(value, {e: index})
        return first.replace(source=(at,), axis=(r,)) if is_reduction else at

    result = te.compute((size,), element, name="row")
    buffers = {t: _strided(t) for t in rows.inputs.values()}
    work = _Work(first if is_reduction else None, value, e, r, list(rows.inputs.values()))
    return te.decl_tensor_intrin(
        result.op, work, "row", buffers, default_buffer_params={"offset_factor": 1}
    )


def _is_true(condition: Any) -> bool:
    return isinstance(condition, tir.IntImm) and condition.value == 1


def _strided(tensor: te.Tensor) -> tir.Buffer:
    strides = [te.var(f"stride{k}") for k in range(tensor.ndim)]
    return tir.decl_buffer(
        tensor.shape, tensor.dtype, tensor.name, strides=strides, offset_factor=1
    )


class _RowReader(Rewriter):
    """Lets loads read rows of their tensors."""

    def __init__(self, spans: dict[tir.Var, tuple[tir.Var, int]]) -> None:
        self.spans = spans
        self.inputs: dict[te.Tensor, te.Tensor] = {}
        self.places: dict[te.Tensor, Any] = {}
        self.is_plain = True

    def visit_producer_load(self, load: Any) -> Any:
        inner = [self.spans[i] for i in load.indices if i in self.spans]
        others = [i for i in load.indices if i not in self.spans]
        known = self.places.setdefault(load.producer, load.indices)
        reads_once = all(a is b for a, b in zip(known, load.indices, strict=True))
        mixed = any(var in self.spans for i in others for var in variables_of(i))
        if mixed or not reads_once or not load.indices:
            self.is_plain = False
            return load
        shape = [extent for _, extent in inner] or [1]
        tensor = self.inputs.get(load.producer)
        if tensor is None:
            name = f"in{len(self.inputs)}"
            tensor = te.placeholder(shape, load.producer.dtype, name)
            self.inputs[load.producer] = tensor
        return tensor(*([var for var, _ in inner] or [0]))


class _Work:
    """The statements of the intrinsic: of a reduction the whole, the reset and the update."""

    def __init__(
        self, reduce: Any, value: Any, e: tir.Var, r: tir.IterVar, inputs: list[te.Tensor]
    ) -> None:
        self.reduce, self.value, self.e, self.r, self.inputs = reduce, value, e, r, inputs

    def __call__(self, ins: list[Any], outs: list[Any]) -> Any:
        by_tensor = {t.name: b for t, b in zip(self.inputs, ins, strict=True)}
        value = _BufferReader(by_tensor).visit(self.value)
        e, out = self.e, outs[0]
        size = out.shape[0]
        if self.reduce is None:
            return self._over(e, size, out.vstore([e], value))
        combiner = self.reduce.combiner
        start = out.vstore([e], combiner.identity_element[0])
        step = out.vstore([e], combiner([out.vload([e])], [value])[0])
        steps = self._over(self.r.var, self.r.dom.extent, step)
        parts = (tir.SeqStmt([start, steps]), start, steps)
        return tuple([self._over(e, size, part) for part in parts])

    def _over(self, var: tir.Var, extent: Any, body: tir.Stmt) -> tir.Stmt:
        own = tir.Var(var.name, var.dtype)
        body = tir.stmt_functor.substitute(body, {var: own})
        return tir.For(own, 0, extent, tir.ForKind.SERIAL, body)


class _BufferReader(Rewriter):
    def __init__(self, buffers: dict[str, Any]) -> None:
        self.buffers = buffers

    def visit_producer_load(self, load: Any) -> Any:
        return self.buffers[load.producer.name].vload(list(load.indices))
