"""Gradients of elementwise functions: relay's table of derivatives, in operators of relax.

    lambda x, y, g: g * y    ->    relax.multiply(output_grad, orig_var)

A row builds a small expression of relay over symbols, which is built again over relax's operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relax.expr import Call, Var, const
from tvm.relay import op as _rows
from tvm.relay.expr import Call as Term
from tvm.relay.expr import Var as Symbol

# from (variable, call, gradient of the variable, block builder) to the arguments' gradients
Gradient: TypeAlias = Callable[[Var, Call, RelayExpr, Any], "list[RelayExpr]"]


class _Builder:
    """Builds terms of relay in operators of relax."""

    def __init__(self, meaning: dict[RelayExpr, RelayExpr]) -> None:
        self.meaning = meaning

    def build(self, term: Any) -> Any:
        """The term over what its symbols mean; shared parts stay shared."""
        if (known := self.meaning.get(term)) is not None:
            return known
        if term.op.name == "cast_like":  # a number in the dtype of an operand
            number, like = term.args
            made: Any = const(number.data.numpy(), self.meaning[like].struct_info.dtype)
        else:
            made = Op.get(f"relax.{term.op.name}")(*[self.build(arg) for arg in term.args])
        self.meaning[term] = made
        return made


def derivative(name: str) -> Callable[[Sequence[RelayExpr], RelayExpr, RelayExpr], Any]:
    """The gradients of an elementwise function's arguments, before they are summed to their shapes.

    Parameters
    ----------
    name : str
        Of the operator in relay.
    """
    rule: Any = _rows.get(name).derivative

    def gradients(args: Sequence[RelayExpr], result: RelayExpr, grad: RelayExpr) -> list[RelayExpr]:
        symbols = [Symbol(f"x{i}") for i in range(len(args))]
        y, g = Symbol("y"), Symbol("g")
        terms: Term | tuple[Term, ...] = rule(*symbols, y, g)
        builder = _Builder({y: result, g: grad, **dict(zip(symbols, args, strict=True))})
        return [builder.build(t) for t in (terms if isinstance(terms, tuple) else (terms,))]

    return gradients
