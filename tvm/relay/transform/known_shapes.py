"""Reshape to shapes that are computed from extents of inputs, where these have names.

dyn.reshape(%x, concatenate((take(shape_of(%x), 0), [8, 64])))    where %x is (n, 512)
    ->    reshape(%x, newshape=[0, -4, 8, 64])

Elements of shapes that are numbers become constants, and numbers up to the extent of an input have
its name in their type.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from tvm import tir
from tvm.arith import Analyzer
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.analysis.symbolic_elements import MOST, Elements, as_number, elements_of_call
from tvm.relay.expr import Call, Constant, Tuple, Var, const
from tvm.relay.function import Function
from tvm.relay.op.new_shape import find_new_shape
from tvm.relay.op.registry import ops
from tvm.relay.op.types import is_any, product, same_dim, shape_of_type
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.relay.traverse import post_order, rewrite_function


class _Shapes:
    """Rebuilds a function and keeps the elements of integer tensors that are known."""

    def __init__(self, params: Sequence[Var]) -> None:
        self.extents = _places(params)
        self.known: dict[int, Elements] = {}
        self.kept: list[RelayExpr] = []  # so that identities stay valid

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if isinstance(new, Constant):
            self._note_constant(new)
        if not is_operator_call(new):
            return new
        made = self._static(new) or new
        infer_type_of(made)
        return made if made is not new else self._noted(made)

    def _note(self, node: RelayExpr, elements: Elements) -> None:
        self.kept.append(node)
        self.known[id(node)] = elements

    def _note_constant(self, node: Constant) -> None:
        array = node.data
        if int(np.prod(array.shape)) <= MOST and not str(array.dtype).startswith(("float", "bf")):
            self._note(node, array.numpy().astype("int64").astype(object))

    def _noted(self, call: Call) -> RelayExpr:
        """The call, or a constant if it gives numbers that are known."""
        found = self._elements(call)
        if found is None:
            return call
        ty = call.checked_type
        if isinstance(ty, TensorType) and all([isinstance(e, int) for e in found.flat]):
            constant = const(found.astype("int64"), str(ty.dtype))
            infer_type_of(constant)
            self._note(constant, found)
            return constant
        self._note(call, found)
        return call

    def _elements(self, call: Call) -> Elements | None:
        if call.op is ops.shape_of:
            dims = _dims(call.args[0])
            return None if dims is None else np.array([as_number(d) for d in dims], object)
        fields = [
            field
            for arg in call.args
            for field in (arg.fields if isinstance(arg, Tuple) else (arg,))
        ]
        return elements_of_call(
            call, call.checked_type, [self.known.get(id(field)) for field in fields]
        )

    def _static(self, call: Call) -> RelayExpr | None:
        """A call whose type says more."""
        if call.op is ops.dyn.reshape:
            return self._reshaped(call)
        return self._counted(call) if call.op is ops.arange else None

    def _counted(self, call: Call) -> RelayExpr | None:
        """Numbers from zero up to an extent of a parameter."""
        bounds = [self.known.get(id(arg)) for arg in call.args]
        if any([bound is None or bound.size != 1 for bound in bounds]):
            return None
        start, stop, step = [bound.item() for bound in bounds]  # type: ignore[union-attr]
        place = self.extents.get(_narrow(stop)) if (start, step) == (0, 1) else None
        if place is None:
            return None
        param, axis = place
        infer_type_of(call)
        return ops.reshape_like(
            call, param, lhs_begin=0, lhs_end=1, rhs_begin=axis, rhs_end=axis + 1
        )

    def _reshaped(self, call: Call) -> RelayExpr | None:
        """A reshape to a known shape."""
        data, shape = call.args
        have, want = _dims(data), self.known.get(id(shape))
        if have is None or want is None:
            return None
        target = _target(have, want.tolist(), bool(call.attrs["allowzero"]))
        if target is None:
            return None
        found = _recoded(data, have, target)
        return found or self._split_first(data, have, target)

    def _split_first(
        self, data: RelayExpr, have: Sequence[Any], target: Sequence[Any]
    ) -> RelayExpr | None:
        """A reshape of (n * m, ..) to (n, m, ..), extents that a parameter has side by side.

        No number in a reshape says where to split, so the parameter does.
        """
        place = self.extents.get(target[0]) if isinstance(target[0], tir.Var) else None
        if place is None or len(target) < 2 or not have:
            return None
        param, axis = place
        dims = _dims(param) or ()
        is_beside = len(dims) > axis + 1 and same_dim(dims[axis + 1], target[1])
        if not is_beside or not same_dim(product(target[:2]), have[0]):
            return None
        split = ops.reshape_like(
            data, param, lhs_begin=0, lhs_end=1, rhs_begin=axis, rhs_end=axis + 2
        )
        return _recoded(split, [*target[:2], *have[1:]], target)


def _places(params: Sequence[Var]) -> dict[Any, tuple[Var, int]]:
    """For each named extent a parameter, and its axis, that has it."""
    found: dict[Any, tuple[Var, int]] = {}
    for param in params:
        ty = param.checked_type
        for axis, dim in enumerate(ty.shape if isinstance(ty, TensorType) else ()):
            if isinstance(dim, tir.Var):
                found.setdefault(dim, (param, axis))
    return found


def _dims(expr: RelayExpr) -> Sequence[Any] | None:
    """The extents of a tensor, numbers or expressions; None if nothing is known of one."""
    ty = infer_type_of(expr)
    if not isinstance(ty, TensorType):
        return None
    dims = shape_of_type(ty)
    return None if any([is_any(dim) for dim in dims]) else dims


def _target(have: Sequence[Any], want: list[Any], allows_zero: bool) -> list[Any] | None:
    """A shape without zeros, which keep an extent, and without -1, which takes what is left."""
    if not allows_zero:
        zeros = [isinstance(d, int) and d == 0 for d in want]
        if any(zeros[len(have) :]):
            return None
        want = [as_number(have[i]) if zeros[i] else d for i, d in enumerate(want)]
    rest = [i for i, d in enumerate(want) if isinstance(d, int) and d == -1]
    if len(rest) > 1:
        return None
    if rest:
        others = [d for i, d in enumerate(want) if i != rest[0]]
        if any([isinstance(d, int) and d == 0 for d in others]):
            return None
        want[rest[0]] = _quotient([as_number(d) for d in _factors(have)], others)
    narrow = [_narrow(d) for d in want]
    return None if any([d is None for d in narrow]) else narrow


def _recoded(data: RelayExpr, have: Sequence[Any], target: Sequence[Any]) -> RelayExpr | None:
    """A reshape by numbers that hold for all extents."""
    if len(have) == len(target) and all(map(same_dim, have, target)):
        return data
    codes = find_new_shape(have, target)
    return None if codes is None else ops.reshape(data, newshape=tuple(codes))


def _quotient(dims: Sequence[Any], others: Sequence[Any]) -> PrimExpr:
    """The product of extents over that of some of them, which are not zero."""
    rest, divisors = list(dims), []
    for other in others:
        same = [i for i, dim in enumerate(rest) if same_dim(dim, other)]
        if same:
            del rest[same[0]]
        else:
            divisors.append(other)
    return Analyzer().simplify(tir.floordiv(_total(rest), _total(divisors)))


def _factors(dims: Sequence[Any]) -> list[Any]:
    """Extents with products taken apart."""
    found: list[Any] = []
    for dim in dims:
        found += _factors([dim.a, dim.b]) if isinstance(dim, tir.Mul) else [dim]
    return found


def _total(dims: Sequence[Any]) -> PrimExpr:
    return Analyzer().simplify(reduce(mul, dims, tir.IntImm("int64", 1)))


def _narrow(value: Any) -> Any:
    """An expression of 64 bits over extents in their own type; None if it is of another form."""
    if isinstance(value, (int, tir.IntImm)):
        return int(getattr(value, "value", value))
    if isinstance(value, tir.Cast):
        return _narrow(value.value)
    if isinstance(value, tir.Var):
        return value
    if isinstance(value, (tir.Add, tir.Sub, tir.Mul, tir.FloorDiv)):
        a, b = _narrow(value.a), _narrow(value.b)
        if a is None or b is None:
            return None
        left = tir.IntImm("int32", a) if isinstance(a, int) else a
        return _OPERATORS[type(value)](left, b)
    return None


_OPERATORS: dict[type, Any] = {
    tir.Add: lambda a, b: a + b,
    tir.Sub: lambda a, b: a - b,
    tir.Mul: mul,
    tir.FloorDiv: tir.floordiv,
}


@relay_pass("KnownShapes", opt_level=0)
def known_shapes(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Let reshapes to shapes that extents of the parameters tell have these as attributes."""
    shapes = _Shapes(func.params)
    if not shapes.extents or not any([calls(node, ops.shape_of) for node in post_order(func)]):
        return func
    return rewrite_function(func, shapes.rewrite)


KnownShapes = known_shapes.factory
