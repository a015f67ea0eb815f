"""Symbols of torch for sizes that are not known at import, while torch traces an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm.error import OpNotImplemented
from tvm.tir import Any as AnyDim


class SymbolicSizes:
    """One symbol for each size of relay; the same size is the same symbol."""

    def __init__(self, alike: bool) -> None:
        from torch.fx.experimental.symbolic_shapes import ShapeEnv

        self.env = ShapeEnv()
        self.alike = alike  # whether sizes that nothing distinguishes are taken to be equal
        self._symbols: dict[str, Any] = {}

    @property
    def count(self) -> int:
        return len(self._symbols)

    def of(self, shape: Sequence[Any]) -> list[Any]:
        """A shape as torch takes it."""
        return [int(dim) if isinstance(dim, (int, np.integer)) else self._symbol(dim)
                for dim in shape]  # fmt: skip

    def _symbol(self, dim: Any) -> Any:
        name = f"?{self.count}" if isinstance(dim, AnyDim) else str(dim)
        if name not in self._symbols:
            self._symbols[name] = self._new_symbol(self.count)
        return self._symbols[name]

    def _new_symbol(self, count: int) -> Any:
        from torch._dynamo.source import ConstantSource
        from torch.fx.experimental.symbolic_shapes import DimDynamic

        # torch asks about sizes of the example; a prime is no multiple of a kernel or a stride
        example = _EXAMPLES[0 if self.alike else count % len(_EXAMPLES)]
        source = ConstantSource(f"size{count}")
        symbol = self.env.create_symbol(example, source, DimDynamic.DYNAMIC, None)
        return self.env.create_symintnode(symbol, hint=example, source=source)

    def check(self) -> None:
        """Refuse a graph that is right for some sizes only.

        That two sizes differ leads to the general case; that they are equal is what the operator
        requires of them, as all examples of distinct sizes were tried before.
        """
        for guard in self.env.guards:
            if not _is_general(guard.expr):
                raise OpNotImplemented(f"torch can write it in simpler operators if {guard.expr}")


_EXAMPLES = (9973, 9967, 9949, 9941, 9931, 9929, 9923, 9907)


def _is_general(condition: Any) -> bool:
    """Whether the graph is that of the general case under a condition, an expression of sympy."""
    kind = getattr(condition, "rel_op", "")
    if kind == "==":
        return all(side.is_Symbol for side in condition.args)
    # rounded quotients and remainders are no polynomials
    return kind == "!=" and all(side.is_polynomial() for side in condition.args)


def traced_for_sizes(trace: Callable[[Any, SymbolicSizes], Any]) -> Any:
    """What `trace` makes in a mode of fake tensors with symbols for dynamic sizes.

    Sizes are distinct at first. Where the operator then fails, they have to be the same, such as
    those of two operands of an addition.
    """
    sizes = SymbolicSizes(alike=False)
    try:
        return _traced(trace, sizes)
    except (
        RuntimeError,
        ValueError,
    ):  # what torch raises of sizes that do not fit, and what check does
        if sizes.count < 2:
            raise
        return _traced(trace, SymbolicSizes(alike=True))


def _traced(trace: Callable[[Any, SymbolicSizes], Any], sizes: SymbolicSizes) -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=sizes.env)
    result = trace(mode, sizes)
    sizes.check()
    return result
