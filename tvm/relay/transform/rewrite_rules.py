"""Rules on relay's operators: the operations of patterns, and how a table is applied to calls.

    DIVISION = Rewrites(rules(rule(x / sqrt(y), x * rsqrt(y))))
    DIVISION.apply(call, type_of_call)       # the call that replaces it, or None

A rule speaks of operators without their attributes. Those of a replacement follow from the type of the
call that it replaces, or from what was matched; conditions ask the builder, which holds the call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.rule_compiler import CompiledRules
from tvm.ir.rules import Operation, Pattern, RuleTable, Vocabulary, operation
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import infer_type_of, known_type
from tvm.relay.expr import Call, Constant, const
from tvm.relay.op.registry import ops
from tvm.relay.qnn.op.convolutions import conv2d as qnn_conv2d
from tvm.relay.transform.operators import AVG_POOLS, CONVOLUTIONS, MAX_POOLS, RESHAPES, calls
from tvm.relay.ty import is_dynamic

# what the operations of patterns stand for; a call of any of the operators matches
OPERATORS: dict[str, tuple[Op, ...]] = {
    "add": (ops.add,),
    "sub": (ops.subtract,),
    "mul": (ops.multiply,),
    "div": (ops.divide,),
    "sqrt": (ops.sqrt,),
    "rsqrt": (ops.rsqrt,),
    "cast": (ops.cast,),
    "cast_like": (ops.cast_like,),
    "reshape": RESHAPES,
    "reshape_like": (ops.reshape_like,),
    "transpose": (ops.transpose, ops.layout_transform),
    "dense": (ops.nn.dense,),
    "conv": CONVOLUTIONS,
    "qconv": (qnn_conv2d.op,),
    "max_pool": MAX_POOLS,
    "avg_pool": AVG_POOLS,
    "pad": (ops.nn.pad,),
    "space_to_batch": (ops.nn.space_to_batch_nd,),
    "batch_to_space": (ops.nn.batch_to_space_nd,),
    "broadcast_to": (ops.broadcast_to,),
    "broadcast_to_like": (ops.broadcast_to_like,),
    "collapse_sum_to": (ops.collapse_sum_to,),
    "collapse_sum_like": (ops.collapse_sum_like,),
    "zeros": (ops.zeros,),
    "zeros_like": (ops.zeros_like,),
    "ones": (ops.ones,),
    "ones_like": (ops.ones_like,),
    "full": (ops.full,),
    "full_like": (ops.full_like,),
}
_ARITY = {
    **dict.fromkeys(("zeros", "ones"), 0),
    **dict.fromkeys(("add", "sub", "mul", "div", "dense", "conv", "pad"), 2),
    **{name: 2 for name in OPERATORS if name.endswith("_like")},
    **dict.fromkeys(("zeros_like", "ones_like"), 1),
    "qconv": 6,
}
_COMMUTATIVE = {"add", "mul"}


def _evaluate(*_: Any) -> Any:
    raise TypeError("relay's operations are evaluated as programs: attributes are not in patterns")


def _operation(name: str) -> Operation:
    arity = _ARITY.get(name, 1)
    operands = tuple([f"args[{i}]" for i in range(arity)])
    return Operation(
        Call, operands, f"{'t' * arity}>t", _evaluate, name in _COMMUTATIVE,
        guard=f"{{}}.op in operators_{name}",
    )  # fmt: skip


VOCABULARY = Vocabulary(
    {name: _operation(name) for name in OPERATORS},
    Constant,
    names={f"operators_{name}": frozenset(operators) for name, operators in OPERATORS.items()},
    value="{}.data.numpy()",
    like="{}",
    literal="build.is_filled_with({}, {})",
    ordered_constants=False,
)


def applied(names: str) -> list[Callable[..., Pattern]]:
    """Operations of patterns by their names: `sqrt, rsqrt = applied("sqrt rsqrt")`."""
    return [partial(operation, name) for name in names.split()]


class CallBuilder:
    """Builds the replacement of one call, and answers what conditions ask about it."""

    def __init__(self, call: Call, ty: TensorType) -> None:
        self.call = call
        self.ty = ty

    # ---- conditions

    def is_static(self) -> bool:
        """Whether the shape of the result is known."""
        return not is_dynamic(self.ty)

    def has_type(self, x: RelayExpr) -> bool:
        """Whether an expression is of the type of the result."""
        return infer_type_of(x) == self.ty

    def is_small(self, *constants: Constant) -> bool:
        """Whether looking at all elements of constants is worth it."""
        return all([math.prod(c.data.shape) <= _SMALL for c in constants])

    def is_filled_with(self, x: RelayExpr, value: float) -> bool:
        """Whether all elements of a tensor are known to be that number, and there are some."""
        if calls(x, *_FILLED):
            return _FILLED[x.operator] == value
        if calls(x, ops.full):
            return self.is_filled_with(x.args[0], value)
        if type(x) is not Constant or not self.is_small(x):
            return False
        array = x.data.elements()
        return array.size > 0 and bool((array == value).all())

    # ---- replacements

    def constant(self, value: Any, like: RelayExpr) -> Constant:
        """A constant that a rule computed."""
        return const(nd.array(np.asarray(value)))

    def add(self, x: RelayExpr, y: RelayExpr) -> Call:
        return ops.add(x, y)

    def mul(self, x: RelayExpr, y: RelayExpr) -> Call:
        return ops.multiply(x, y)

    def rsqrt(self, x: RelayExpr) -> Call:
        return ops.rsqrt(x)

    def cast(self, x: RelayExpr) -> Call:
        return ops.cast(x, dtype=self.ty.dtype)

    def reshape(self, x: RelayExpr) -> Call:
        shape = self.ty.concrete_shape
        return ops.reshape(x, newshape=shape, allowzero=0 in shape)

    def broadcast_to(self, x: RelayExpr) -> Call:
        return ops.broadcast_to(x, shape=self.ty.concrete_shape, dtype=self.ty.dtype)

    def collapse_sum_to(self, x: RelayExpr) -> Call:
        return ops.collapse_sum_to(x, shape=self.ty.concrete_shape)

    def zeros(self) -> Call:
        return ops.zeros(shape=self.ty.concrete_shape, dtype=self.ty.dtype)

    def ones(self) -> Call:
        return ops.ones(shape=self.ty.concrete_shape, dtype=self.ty.dtype)

    def full(self, value: RelayExpr) -> Call:
        return ops.full(value, shape=self.ty.concrete_shape, dtype=self.ty.dtype)


# large tensors are parameters: looking at all their elements would cost more than it saves
_SMALL = 4096
_FILLED: dict[Op, int] = {ops.zeros: 0, ops.zeros_like: 0, ops.ones: 1, ops.ones_like: 1}


class Rewrites:
    """A table of rules, found by the operator of a call."""

    def __init__(self, table: RuleTable, builder: type[CallBuilder] = CallBuilder) -> None:
        self.table = table
        self.builder = builder
        self._by_operator: dict[RelayExpr, CompiledRules] = {}
        for name in dict.fromkeys([rule.pattern.name for rule in table]):
            compiled = CompiledRules(name, table, VOCABULARY)
            for op in OPERATORS[name]:
                if op.num_inputs == _ARITY.get(name, 1):
                    self._by_operator[op] = compiled

    def rewrite(self, old: RelayExpr, new: RelayExpr) -> RelayExpr:
        """The step of `rewrite_post_order`: what `new`, which stands for `old`, is by the rules."""
        if type(new) is not Call or not isinstance(ty := known_type(old), TensorType):
            return new
        replacement = self.apply(new, ty)
        return new if replacement is None else replacement

    def apply(self, call: Call, ty: TensorType) -> RelayExpr | None:
        """What a call of that type is by the first rule that matches; None if none does."""
        rules = self._by_operator.get(call.op)
        if rules is None:
            return None
        # no rule distinguishes other classes
        classes = [c if c is Call or c is Constant else RelayExpr for c in map(type, call.args)]
        replace = rules.bucket(*classes)
        return None if replace is None else replace(self.builder(call, ty), *call.args)
