"""Kernels that compute the shapes of other kernels' results.

Their arguments are one tensor for each input, its extents as int64 or its values, then for each
result its extents, then for each result its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.driver import lower
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.type import TensorType
from tvm.ir.visitor import Rewriter
from tvm.relay.analysis.symbolic import SymbolicKernel, reads_values, shape_operands, variables_of
from tvm.relay.expr import Call, Constant
from tvm.relay.transform.manifest_alloc import bytes_of_element
from tvm.relay.ty import flat_types
from tvm.target import Target
from tvm.tir import PrimFunc, Stmt
from tvm.tir.stmt import NO_OP


class ShapeFunctions:
    """The shape functions of a program; kernels of whose shapes the same is known share one."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.functions: dict[str, PrimFunc] = {}
        self._known: dict[int, list[tuple[SymbolicKernel, str]]] = {}

    def name_of(self, kernel: SymbolicKernel, name: str) -> str:
        """The function of a kernel, made now if no equal one was; ``name`` is for a new one."""
        digest = structural_hash(_told_by(kernel))
        candidates = self._known.setdefault(digest, [])
        for known, its_name in candidates:
            if structural_equal(_told_by(known), _told_by(kernel)):
                return its_name
        self.functions[name] = _lowered(kernel, name, self.target)
        candidates.append((kernel, name))
        return name


def _told_by(kernel: SymbolicKernel) -> list[Any]:
    """What a shape function depends on."""
    if kernel.shape_op is not None:
        return [kernel.func]
    types = [p.checked_type for p in kernel.func.params]
    return [types, kernel.func.body.checked_type, kernel.conditions]


def _lowered(kernel: SymbolicKernel, name: str, target: Target) -> PrimFunc:
    """The loops of the shape function of a kernel."""
    with target:
        own = kernel.shape_op
        make = _derived if own is None else _declared
        inputs, outputs = make(kernel, name)
        sch = te.create_schedule([out.op for out in outputs])
        mod = lower(sch, [*inputs, *outputs], name=name)
    func = mod[name]
    assert isinstance(func, PrimFunc)
    return func.with_attr("target", target)


Stages = tuple[list[te.Tensor], list[te.Tensor]]


def _derived(kernel: SymbolicKernel, name: str) -> Stages:
    """From the expressions that the type relations gave."""
    types = [ty for p in kernel.func.params for ty in flat_types(p.checked_type)]
    results = flat_types(kernel.func.body.checked_type)
    inputs = [te.placeholder((len(ty.shape),), "int64", f"shape{i}") for i, ty in enumerate(types)]
    shapes: list[tuple[int, ...]] = [(len(ty.shape),) for ty in results]
    places = variables_of(types)

    def body(ins: Sequence[tir.Buffer], outs: Sequence[tir.Buffer]) -> Stmt:
        wide = _Wide({v: ins[i][axis] for v, (i, axis) in places.items()})
        statements = _stores(results, outs, wide)
        for condition, message in reversed(kernel.conditions):
            check = tir.AssertStmt(wide.visit(condition), tir.StringImm(message), NO_OP)
            statements.insert(0, check)
        return tir.stmt_seq(*statements)

    shapes += [()] * len(results)
    made = te.extern(shapes, inputs, body, name=name, dtype=["int64"] * len(shapes))
    return inputs, made if isinstance(made, list) else [made]


def _stores(results: Sequence[TensorType], outs: Sequence[tir.Buffer], wide: _Wide) -> list[Stmt]:
    statements: list[Stmt] = []
    for ty, shape, size in zip(results, outs, outs[len(results) :], strict=False):
        total: PrimExpr = tir.IntImm("int64", bytes_of_element(ty))
        for axis, dim in enumerate(ty.shape):
            extent = wide.visit(dim)
            statements.append(tir.BufferStore(shape, extent, [axis]))
            total = total * extent
        statements.append(tir.BufferStore(size, total, []))
    return statements


class _Wide(Rewriter):
    """Dimensions in 64 bits, variables read from where they are found."""

    def __init__(self, values: dict[tir.Var, PrimExpr]) -> None:
        self.values = values

    def visit_var(self, var: tir.Var) -> PrimExpr:
        return self.values[var]

    def visit_int_imm(self, number: tir.IntImm) -> PrimExpr:
        return tir.IntImm("int64", number.value) if number.dtype == "int32" else number


def _declared(kernel: SymbolicKernel, name: str) -> Stages:
    """From the shape function that the operator declares."""
    call = kernel.shape_op
    assert isinstance(call, Call) and isinstance(call.op, Op) and call.op.shape_func is not None
    results = flat_types(kernel.func.body.checked_type)
    inputs: dict[int, list[te.Tensor]] = {}  # the tensors of each parameter
    whole: set[int] = set()  # parameters of which the values are given
    flags = iter(reads_values(kernel))
    for param in kernel.func.params:
        for i, ty in enumerate(flat_types(param.checked_type)):
            is_read = next(flags)
            shape = ty.shape if is_read else (len(ty.shape),)
            dtype = ty.dtype if is_read else "int64"
            tensor = te.placeholder(shape, dtype, f"p{len(inputs)}" + f"_{i}" * bool(i))
            inputs.setdefault(id(param), []).append(tensor)
            whole |= {id(param)} if is_read else set()
    given: list[te.Tensor | None] = []
    for operand, flag in shape_operands(call):
        made = inputs.get(id(operand))
        if made is None:
            constant = _constant(operand)
            given.append(constant if flag or constant is None else _no_extents())
        elif id(operand) in whole and not flag:
            given += [_shape_vector(tensor) for tensor in made]
        else:
            given += made
    ranks = [tir.IntImm("int32", len(ty.shape)) for ty in results]
    shapes = list(call.op.shape_func(call.attrs, given, ranks))
    sizes = [
        te.compute((), _bytes_in(shape, ty), name=f"size{i}")
        for i, (shape, ty) in enumerate(zip(shapes, results, strict=True))
    ]
    return [tensor for made in inputs.values() for tensor in made], [*shapes, *sizes]


def _constant(tensor: RelayExpr) -> te.Tensor | None:
    """A scalar inside the kernel."""
    if not isinstance(tensor, Constant):
        return None
    value, dtype = tensor.data.numpy().item(), str(tensor.data.dtype)
    made: te.Tensor = te.compute((), lambda: tir.const(value, dtype), name="constant")
    return made


def _no_extents() -> te.Tensor:
    """The shape of a scalar."""
    return te.compute((0,), lambda i: tir.IntImm("int64", 0), name="shape")


def _shape_vector(tensor: te.Tensor) -> te.Tensor:
    return topi.shape(tensor, "int64")


def _bytes_in(shape: te.Tensor, ty: TensorType) -> Callable[[], PrimExpr]:
    def total() -> PrimExpr:
        value: PrimExpr = tir.IntImm("int64", bytes_of_element(ty))
        for axis in range(len(ty.shape)):
            value = value * shape[axis]
        return value

    return total
