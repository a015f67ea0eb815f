"""Write what lies between dequantize and quantize in integer operators.

%0 = qnn.dequantize(%x, s, z); %1 = nn.max_pool2d(%0); qnn.quantize(%1, s, z)
    ->    qnn.requantize(nn.max_pool2d(%x), s, z, s, z)

A region is what a `qnn.quantize` depends on, down to the `qnn.dequantize` calls; it is rewritten if
each of its operators has a rule. A rule is a function of a call, whose arguments are rewritten
already, and of a map from expressions to their affine types; it returns the new expression and its
affine type. In the map the call itself has the type that the region ends with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tvm.error import OpNotImplemented
from tvm.ir.affine_type import AffineType, TensorAffineType, TupleAffineType
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.structural import structural_equal
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.analysis.fake_quantization import quantized_region
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.op import (
    INTEGER_RULE,
    OPTIONAL_INTEGER_RULE,
    register_fake_quantization_to_integer,
)
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.fake_quantization_rules import (
    RULES,
    NoRule,
    TypeMap,
    binary_choice,
    binary_rule,
    binary_types,
    unary_identity,
    unary_rule,
    zeros_for,
)
from tvm.relay.transform.fold_constant import FoldConstantExpr
from tvm.relay.transform.operators import calls, is_operator_call
from tvm.relay.traverse import operands, rewrite_function, with_operands

Rule: TypeAlias = Callable[[Call, TypeMap], Sequence[Any]]


class IntegerConverter:
    """Rewrites the regions of one function."""

    def __init__(self, hard_fail: bool, optional: Iterable[str]) -> None:
        self.hard_fail = hard_fail
        self.optional = frozenset(optional)
        self._results: dict[int, list[RelayExpr]] = {}  # of an expression in all regions
        self._kept: list[RelayExpr] = []  # so that ids stay valid

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        """A quantization at the end of a region, as integers all the way."""
        if not calls(new, ops.qnn.quantize):
            return new
        region = quantized_region(new, self._has_rule)
        return new if region is None else self._converted(region, new)

    def _has_rule(self, op: Op) -> bool:
        if self.rule_of(op) is not None:
            return True
        if self.hard_fail:
            raise OpNotImplemented(
                f"FakeQuantizationToInteger requires a rule for {op.name}",
                hint="register one: relay.op.register_fake_quantization_to_integer",
            )
        return False

    def rule_of(self, op: Op) -> Rule | None:
        """How calls of an operator become integer ones."""
        optional: Rule | None = op.get_attr(OPTIONAL_INTEGER_RULE)
        if op.name in self.optional and optional is not None:
            return optional
        return op.get_attr(INTEGER_RULE) or RULES.get(op)

    def _converted(self, region: Sequence[RelayExpr], end: Call) -> RelayExpr:
        wanted = TensorAffineType(end.args[1], end.args[2], end.attrs.out_dtype, end.attrs.axis)
        try:
            return self.apply_rules(region, wanted)[0]
        except NoRule as reason:
            if self.hard_fail:
                raise OpNotImplemented(
                    f"FakeQuantizationToInteger cannot convert {end.operator.name}'s input: {reason}"
                ) from None
            return end

    def apply_rules(
        self, region: Sequence[RelayExpr], wanted: TensorAffineType | None
    ) -> tuple[RelayExpr, AffineType]:
        """The last expression of a region as integers, and its type."""
        types: dict[RelayExpr, AffineType] = {}
        done: dict[int, RelayExpr] = {}
        for node in region:
            new = with_operands(node, [done.get(id(o), o) for o in operands(node)])
            if isinstance(new, Call):
                if wanted is not None:
                    types[new] = wanted
                rule = self.rule_of(new.operator)
                assert rule is not None
                new, types_of_new = rule(new, types)
                new = self._shared(node, new)
                types[new] = types_of_new
            elif isinstance(new, Tuple):
                _type_tuple(new, types)
            elif isinstance(new, TupleGetItem) and new.tuple_value in types:
                whole = types[new.tuple_value]
                assert isinstance(whole, TupleAffineType)
                types[new] = whole.types[new.index]
            done[id(node)] = new
        last = done[id(region[-1])]
        if last not in types:
            raise NoRule("nothing of it is quantised")
        return last, types[last]

    def _shared(self, node: RelayExpr, new: RelayExpr) -> RelayExpr:
        """What a node became in another region already, if it is the same."""
        self._kept.append(node)
        results = self._results.setdefault(id(node), [])
        for result in results:
            if _is_same(result, new):
                return result
        results.append(new)
        return new


def _is_same(a: RelayExpr, b: RelayExpr) -> bool:
    """Whether two calls agree down to what they share."""
    if a is b:
        return True
    if isinstance(a, Constant) and isinstance(b, Constant):
        x, y = a.data.numpy(), b.data.numpy()
        return x.dtype == y.dtype and np.array_equal(x, y)
    left, right = operands(a), operands(b)
    if type(a) is not type(b) or not left or len(left) != len(right):
        return False
    if isinstance(a, Call) and isinstance(b, Call) and not structural_equal(a.attrs, b.attrs):
        return False
    if isinstance(a, TupleGetItem) and isinstance(b, TupleGetItem) and a.index != b.index:
        return False
    return all([_is_same(x, y) for x, y in zip(left, right, strict=True)])


class TrainedConverter(IntegerConverter):
    """Converts single operators whose tensors are all dequantised: networks trained quantised."""

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if not is_operator_call(new):
            return new
        if new.op in (ops.qnn.quantize, ops.qnn.dequantize) or self.rule_of(new.operator) is None:
            return new
        below = [f for a in new.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
        found = [calls(arg, ops.qnn.dequantize) for arg in below]
        if not any(found) or not all(
            ok or isinstance(arg, Constant) for ok, arg in zip(found, below, strict=True)
        ):
            return new
        tuples = [a for a in new.args if isinstance(a, Tuple)]
        try:
            out, kind = self.apply_rules([*below, *tuples, new], None)
        except (NoRule, KeyError):  # a rule that needs the type of the result
            return new
        if not isinstance(kind, TensorAffineType):
            return new
        return ops.qnn.dequantize(out, kind.scale, kind.zero_point, axis=kind.axis)


def _type_tuple(value: Tuple, types: dict[RelayExpr, AffineType]) -> None:
    if all([field in types for field in value.fields]):
        types[value] = TupleAffineType([types[field] for field in value.fields])


def FakeQuantizationToInteger(
    hard_fail: bool = False, use_qat: bool = False, optional_qnn_ops: Iterable[str] | None = None
) -> Pass:
    """The pass.

    Parameters
    ----------
    hard_fail : raise an error where an operator between dequantize and quantize has no rule,
        rather than leaving the region in real numbers.
    use_qat : convert operators on dequantised tensors also where no quantize follows.
    optional_qnn_ops : operators whose optional rules are to be used.
    """

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        if is_primitive(func):
            return func
        options = (hard_fail, tuple(optional_qnn_ops or ()))
        result = rewrite_function(func, IntegerConverter(*options).rewrite)
        if use_qat:
            result = rewrite_function(result, TrainedConverter(False, options[1]).rewrite)
        return result

    return FunctionPass(run, PassInfo(0, "FakeQuantizationToInteger"))


# -- what rules of users are made of


def fold_constant(expr: RelayExpr) -> RelayExpr:
    """The expression with what is constant in it computed."""
    return FoldConstantExpr(expr, IRModule())


def get_zeros(scale: RelayExpr) -> RelayExpr:
    """Zero points for a scale."""
    return zeros_for(scale)


def infer_shape(expr: RelayExpr) -> tuple[int, ...]:
    """The shape of a tensor."""
    return tensor_type_of(expr).concrete_shape


def approx_equal(x: RelayExpr, y: RelayExpr) -> bool:
    """Whether two expressions are constants that differ by rounding at most, or the same."""
    left, right = [fold_constant(expr) for expr in (x, y)]
    if isinstance(left, Constant) and isinstance(right, Constant):
        a, b = left.data.numpy(), right.data.numpy()
        return bool(a.shape == b.shape and np.allclose(a, b, rtol=1e-6, atol=1e-6))
    return structural_equal(left, right)


def get_binary_types(
    expr: Call, type_map: TypeMap
) -> tuple[RelayExpr, RelayExpr, AffineType, AffineType, AffineType]:
    """Both operands of a call, their types and that of the result."""
    return (*binary_types(expr, type_map), type_map[expr])


def register_unary_identity(op_name: str) -> Any:
    """An operator that moves elements, or chooses among them."""
    return register_fake_quantization_to_integer(op_name, unary_identity)


def register_unary_qnn(op_name: str, op: Callable[..., RelayExpr]) -> Any:
    """An operator of one argument as `op(x, scale, zero_point, out_scale, out_zero_point)`."""
    return register_fake_quantization_to_integer(op_name, unary_rule(op))


def register_binary_qnn(op_name: str, op: Callable[..., RelayExpr]) -> Any:
    """An operator of two arguments as one of `relay.qnn.op`, such as `relay.qnn.op.add`."""
    return register_fake_quantization_to_integer(
        op_name, binary_rule(op, op_name in ("add", "subtract"))
    )


def register_binary_identity(op_name: str, op: Callable[..., RelayExpr]) -> Any:
    """An operator that chooses among elements of two arguments, as `op` of integers."""

    def rule(call: Call, types: TypeMap) -> tuple[RelayExpr, AffineType]:
        chosen, affine = binary_choice(call, types)
        assert isinstance(chosen, Call)
        return op(*chosen.args), affine

    return register_fake_quantization_to_integer(op_name, rule)
