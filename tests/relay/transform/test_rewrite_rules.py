"""Every rule on relay's operators, on random programs that it matches: the replacement has the same value."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.ir.rules import Apply, Literal, Pattern, PatternConst, Rule, rules
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.op.registry import ops
from tvm.relay.transform.div_to_mul import DIVISIONS
from tvm.relay.transform.rewrite_rules import OPERATORS, CallBuilder, Rewrites
from tvm.relay.transform.simplify_rules import SIMPLIFY, SimplifyBuilder

SHAPES = (
    (2, 3),
    (3, 2),
    (1, 3),
    (6,),
    (2, 1, 3),
    (4, 3),
    (2, 4),
    (2, 16, 3),
    (32, 3),
    (2, 16, 4),
    (32, 4),
)
DTYPES = ("float32", "int32", "int8", "int16")
TRIES = 20_000
BUILDERS: dict[Rule, type[CallBuilder]] = {
    **dict.fromkeys(SIMPLIFY, SimplifyBuilder), **dict.fromkeys(DIVISIONS, CallBuilder)
}  # fmt: skip


class Instance:
    """A random program of a pattern's form over constants."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.values: dict[str, relay.Expr] = {}
        self.dtype = chance.choice(DTYPES)

    def build(self, pattern: Pattern) -> relay.Expr:
        if isinstance(pattern, Literal):
            shape = self.chance.choice(((), (1,), (2, 3)))
            return relay.const(np.full(shape, pattern.value, self.dtype))
        if isinstance(pattern, Apply):
            return self._call(pattern.name, [self.build(arg) for arg in pattern.args])
        return self.values.setdefault(str(pattern), self._tensor(isinstance(pattern, PatternConst)))

    def _tensor(self, is_constant: bool) -> relay.Expr:
        shape = self.chance.choice(((), (3,), (1, 3)) if is_constant else SHAPES)
        numbers = [self.chance.randint(1, 9) for _ in range(int(np.prod(shape)))]
        return relay.const(np.reshape(np.array(numbers, self.dtype), shape))

    def _call(self, name: str, args: list[relay.Expr]) -> relay.Expr:
        shape = infer_type_of(args[0]).concrete_shape
        if name == "cast":
            return ops.cast(args[0], dtype=self.chance.choice(DTYPES))
        if name == "reshape":
            same_size = [s for s in SHAPES if np.prod(s) == np.prod(shape)]
            return ops.reshape(args[0], newshape=self.chance.choice(same_size or [shape]))
        if name == "transpose":
            axes = self.chance.sample(range(len(shape)), len(shape))
            return ops.transpose(args[0], axes=tuple(axes))
        if name == "sqrt" and not self.dtype.startswith("float"):
            raise ValueError("kernels of roots take floating-point numbers")
        if name == "full_like":
            args[1] = relay.const(np.array(self.chance.randint(0, 5), self.dtype))
        if name in ("broadcast_to_like", "collapse_sum_like"):
            like = infer_type_of(args[1]).concrete_shape
            wide, narrow = (like, shape) if name == "broadcast_to_like" else (shape, like)
            if np.broadcast_shapes(wide, narrow) != wide:
                raise ValueError("one of the shapes must be broadcast to the other")
        operator: Any = OPERATORS[name][0]
        return operator(*args)


def value_of(expr: relay.Expr) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=0):
        folded = relay.transform.FoldConstantExpr(expr, tvm.IRModule())
        if isinstance(folded, relay.Constant):
            return folded.data.numpy()
        return relay.create_executor("graph").evaluate(relay.Function([], folded))().numpy()


def matching(rule: Rule, chance: random.Random) -> tuple[relay.Expr, relay.Expr]:
    """A program that the rule matches, and what it makes of it."""
    table = Rewrites(rules(rule), BUILDERS[rule])
    for _ in range(TRIES):
        instance = Instance(chance)
        try:
            program = instance.build(rule.pattern)
            ty = infer_type_of(program)
        except (tvm.TVMError, TypeError, ValueError):
            continue  # the operands do not fit
        if (replacement := table.apply(program, ty)) is not None:
            return program, replacement
    raise AssertionError(f"no program was found that matches {rule}")


@pytest.mark.parametrize("rule", BUILDERS, ids=str)
def test_rule_keeps_the_value(rule: Rule) -> None:
    chance = random.Random(str(rule))
    for _ in range(3):
        program, replacement = matching(rule, chance)
        wanted, found = value_of(program), value_of(replacement)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
