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
from tvm.relay.transform.flatten_atrous_conv import ATROUS, DilationBuilder
from tvm.relay.transform.fold_explicit_padding import PADDING, PaddingBuilder
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
    **dict.fromkeys(SIMPLIFY, SimplifyBuilder), **dict.fromkeys(DIVISIONS, CallBuilder),
    **dict.fromkeys(PADDING, PaddingBuilder), **dict.fromkeys(ATROUS, DilationBuilder),
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


class WindowInstance(Instance):
    """A random program with a convolution or a pooling; numbers are those of its padding, now and then."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(chance)
        self.dtype = chance.choice(("float32", "int32"))
        self.layout = chance.choice(("NCHW", "NHWC"))
        self.block = (chance.randint(1, 2), chance.randint(1, 3))

    def build(self, pattern: Pattern) -> relay.Expr:
        if isinstance(pattern, Apply) and pattern.name == "qconv":
            self.dtype = "int8"
        if str(pattern) in ("scale", "kernel_scale"):
            return relay.const(0.5, "float32")
        if str(pattern) in ("zero_point", "kernel_zero", "c1"):
            return relay.const(0 if str(pattern) == "zero_point" else 3, "int32")
        return super().build(pattern)

    def _tensor(self, is_constant: bool) -> relay.Expr:
        if is_constant:
            least = np.iinfo(self.dtype).min if "int" in self.dtype else -np.inf
            return relay.const(np.array(self.chance.choice((0, 1, 3, least)), self.dtype))
        extents = {axis: self.chance.randint(1, 3) for axis in "NC"}
        extents |= {axis: self.chance.randint(2, 6) for axis in "HW"}
        shape = [extents[axis] for axis in self.layout]
        numbers = [self.chance.randint(-5, 5) for _ in range(int(np.prod(shape)))]
        return relay.const(np.reshape(np.array(numbers, self.dtype), shape))

    def _call(self, name: str, args: list[relay.Expr]) -> relay.Expr:
        if name == "pad":
            widths = [(0, 0) if axis in "NC" else self._pair() for axis in self.layout]
            return ops.nn.pad(*args, pad_width=tuple(widths))
        if name == "space_to_batch":
            return ops.nn.space_to_batch_nd(
                args[0], block_shape=self.block, paddings=(self._pair(), self._pair())
            )
        if name == "batch_to_space":
            crops = ((0, self.chance.randint(0, 1)), (0, self.chance.randint(0, 1)))
            return ops.nn.batch_to_space_nd(args[0], block_shape=self.block, crops=crops)
        if name.endswith("pool"):
            return self._pool(name, args[0])
        return self._convolution(name, args)

    def _pair(self) -> tuple[int, int]:
        return self.chance.randint(0, 2), self.chance.randint(0, 2)

    def _pool(self, name: str, x: relay.Expr) -> relay.Expr:
        if self.dtype != "float32":
            raise ValueError("numpy's means of integers are rounded in another way")
        own = self.chance.choice(((0, 0), (1, 1)))
        options = {"count_include_pad": self.chance.random() < 0.5} if name == "avg_pool" else {}
        function = relay.nn.avg_pool2d if name == "avg_pool" else relay.nn.max_pool2d
        return function(x, (3, 3), padding=own, layout=self.layout, **options)

    def _convolution(self, name: str, args: list[relay.Expr]) -> relay.Expr:
        x, _, *others = args
        channels = infer_type_of(x).concrete_shape[self.layout.index("C")]
        extents = {"O": 2, "I": channels, "H": self.chance.randint(1, 3), "W": 2}
        kernel_layout = "OIHW" if self.layout == "NCHW" else "HWIO"
        shape = [extents[axis] for axis in kernel_layout]
        numbers = [self.chance.randint(-3, 3) for _ in range(int(np.prod(shape)))]
        kernel = relay.const(np.reshape(np.array(numbers, self.dtype), shape))
        padding = self.chance.choice(((0, 0), (1, 0)))
        options = {"padding": padding, "data_layout": self.layout, "kernel_layout": kernel_layout}
        if name == "conv":
            return relay.nn.conv2d(x, kernel, **options)
        window = (extents["H"], extents["W"])
        return relay.qnn.op.conv2d(x, kernel, *others, kernel_size=window, channels=2, **options)


def value_of(expr: relay.Expr) -> np.ndarray:
    with tvm.transform.PassContext(opt_level=0):
        folded = relay.transform.FoldConstantExpr(expr, tvm.IRModule())
        if isinstance(folded, relay.Constant):
            return folded.data.numpy()
        return relay.create_executor("graph").evaluate(relay.Function([], folded))().numpy()


def matching(rule: Rule, chance: random.Random) -> tuple[relay.Expr, relay.Expr]:
    """A program that the rule matches, and what it makes of it."""
    table = Rewrites(rules(rule), BUILDERS[rule])
    kind = WindowInstance if rule in (*PADDING, *ATROUS) else Instance
    for _ in range(TRIES):
        instance = kind(chance)
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
