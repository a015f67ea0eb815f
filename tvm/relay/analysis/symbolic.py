"""Shapes that only the run knows, as expressions over the shapes of a kernel's arguments.

A primitive function is inferred anew with a variable for each dimension that is no number. The
type relations then give the dimensions of the results as expressions, and the conditions that they
could not decide; both become the kernel's shape function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tvm.error import TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.ir.type import TensorType, TupleType, Type
from tvm.relay.analysis.infer import infer_type_of, set_type
from tvm.relay.expr import Call, Tuple, Var
from tvm.relay.function import Function
from tvm.relay.op.types import MUST_FIT, Conditions, undecided
from tvm.relay.traverse import post_order, substitute
from tvm.relay.ty import flat_types, is_dynamic
from tvm.tir.expr import Any, IntImm, SizeVar
from tvm.tir.expr import Var as TirVar


@dataclass
class DimensionPool:
    """Variables for dimensions, the same ones for every kernel, so that equal kernels look equal."""

    variables: list[TirVar] = field(default_factory=list)

    def __getitem__(self, index: int) -> TirVar:
        while len(self.variables) <= index:
            self.variables.append(SizeVar(f"n{len(self.variables)}", "int32"))
        return self.variables[index]


@dataclass(frozen=True)
class SymbolicKernel:
    """A primitive function over variable dimensions, and what must hold of them."""

    func: Function
    conditions: Conditions

    @property
    def shape_op(self) -> Call | None:
        """The call whose operator has a shape function of its own, if the kernel consists of it."""
        body = self.func.body
        if not isinstance(body, Call) or not isinstance(body.op, Op):
            return None
        return None if body.op.shape_func is None else body


def shape_operands(call: Call) -> list[tuple[RelayExpr, bool]]:
    """The tensors in the arguments, and whether the operator's shape function reads their values."""
    assert isinstance(call.op, Op)
    flags = call.op.get_attr("TShapeDataDependent") or False
    if isinstance(flags, (bool, int)):
        flags = [flags] * len(call.args)
    return [
        (tensor, bool(flag))
        for arg, flag in zip(call.args, flags, strict=False)
        for tensor in (arg.fields if isinstance(arg, Tuple) else (arg,))
    ]


def reads_values(kernel: SymbolicKernel) -> list[bool]:
    """For each parameter of the kernel, whether its shape function reads the values."""
    call = kernel.shape_op
    read = {id(t) for t, flag in shape_operands(call) if flag} if call is not None else set()
    return [id(p) in read for p in kernel.func.params for _ in flat_types(p.checked_type)]


def is_dynamic_kernel(func: Function) -> bool:
    """Whether an argument or result has a shape that only the run knows."""
    return is_dynamic(func.body.checked_type) or any(
        is_dynamic(p.checked_type) for p in func.params
    )


def symbolic_kernel(func: Function, pool: DimensionPool) -> SymbolicKernel:
    """The primitive function with a variable for each distinct dimension that is no number."""
    dims = _Dimensions(pool)
    params = [Var(p.name_hint, dims.named(p.checked_type)) for p in func.params]
    inner = substitute(func.body, dict(zip(func.params, params, strict=True)))
    symbolic = Function(params, inner, None, (), func.attrs)
    with undecided() as conditions:
        infer_type_of(symbolic)
    found = inner.checked_type
    who = _operator_names(inner)
    if _has_unknown(found):
        if not (isinstance(inner, Call) and isinstance(inner.op, Op) and inner.op.shape_func):
            raise TVMError(
                f"the virtual machine requires a shape function for {who}, whose "
                "result has a shape that the types of the arguments do not tell",
                hint="relay.op.register_shape_func(name, data_dependent, function)",
            )
        # the kernel reads them from the results it is given
        set_type(inner, dims.named(found))
    return SymbolicKernel(
        symbolic, [(c, f"{who} {text}" if text == MUST_FIT else text) for c, text in conditions]
    )


def _operator_names(body: RelayExpr) -> str:
    calls = [n for n in post_order(body) if isinstance(n, Call)]
    return ", ".join(dict.fromkeys([call.operator.name for call in calls]))


class _Dimensions:
    """Which variable stands for which dimension."""

    def __init__(self, pool: DimensionPool) -> None:
        self.pool = pool
        self.known: list[tuple[PrimExpr, TirVar]] = []

    def named(self, ty: Type) -> Type:
        """The type with variables in place of what is no number."""
        if isinstance(ty, TupleType):
            return TupleType([self.named(f) for f in ty.fields])
        if not isinstance(ty, TensorType):
            return ty
        return TensorType(tuple([self._variable(d) for d in ty.shape]), ty.dtype)

    def _variable(self, dim: PrimExpr) -> PrimExpr:
        if isinstance(dim, IntImm):
            return dim
        if not isinstance(dim, Any):
            for known, variable in self.known:
                if known is dim or structural_equal(known, dim):
                    return variable
        variable = self.pool[len(self.known)]
        self.known.append((dim, variable))
        return variable


def _has_unknown(ty: Type) -> bool:
    if isinstance(ty, TupleType):
        return any(_has_unknown(f) for f in ty.fields)
    return isinstance(ty, TensorType) and any(isinstance(d, Any) for d in ty.shape)


def variables_of(types: Sequence[TensorType]) -> dict[TirVar, tuple[int, int]]:
    """Where each variable dimension is found: the first tensor and axis."""
    found: dict[TirVar, tuple[int, int]] = {}
    for i, ty in enumerate(types):
        for axis, dim in enumerate(ty.shape):
            if isinstance(dim, TirVar):
                found.setdefault(dim, (i, axis))
    return found
