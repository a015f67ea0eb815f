"""Operators told by others, of which their gradients are made.

Their kernels are their own: a composition is for `relay.transform.gradient` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from string import ascii_letters

import numpy as np

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.ir.type import TupleType, Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, Tuple, const, fields_of

from .known_shapes import known_shape
from .registry import ops

Types = Sequence[Type]


def _affine_grid(call: Call, arg_types: Types) -> RelayExpr:
    maps = call.args[0]
    batch, dtype = known_shape(maps, "image.affine_grid")[0], infer_type_of(maps).dtype
    height, width = call.attrs.target_shape
    y, x = [np.linspace(-1, 1, n) if n > 1 else np.array([-1.0]) for n in (height, width)]
    places = [(u, v, 1.0) for v, u in product(y, x)]
    rows = ops.reshape(maps, newshape=(batch * 2, 3))
    return ops.reshape(
        ops.nn.dense(rows, const(np.array(places), dtype)), newshape=(batch, 2, height, width)
    )


def _einsum_gradient(call: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Of each factor: the sum of products of the gradient and of the other factors."""
    ty = infer_type_of(call.args[0])
    assert isinstance(ty, TupleType)
    factors = fields_of(call.args[0], len(ty.fields))
    shapes = [known_shape(f, "einsum") for f in factors]
    terms, output = topi.einsum_letters(call.attrs.equation, [len(s) for s in shapes])
    extents = topi.einsum_extents(terms, shapes, call.attrs.equation)
    free = [c for c in ascii_letters if c not in "".join(terms)]
    found = []
    for k, term in enumerate(terms):
        names = [grad, *factors[:k], *factors[k + 1 :]]
        given = [output, *terms[:k], *terms[k + 1 :]]
        wanted = ""
        for letter in term:
            own = letter
            if letter in wanted:  # a diagonal
                own = free[len(wanted)]
                names.append(const(np.eye(extents[letter]), ty.fields[k].dtype))  # type: ignore[attr-defined]
                given.append(letter + own)
            elif letter not in "".join(given):
                names.append(const(np.ones(extents[letter]), ty.fields[k].dtype))  # type: ignore[attr-defined]
                given.append(letter)
            wanted += own
        whole_sum = ops.einsum(Tuple(names), equation=f"{','.join(given)}->{wanted}")
        # axes of extent 1 are broadcast
        found.append(ops.collapse_sum_like(whole_sum, factors[k]))
    return [Tuple(found)]


def _as(op: Op) -> Callable[[Call, Types], RelayExpr]:
    """As an operator that is more exact."""
    return lambda call, arg_types: op(*call.args)


ops.einsum.set_facets(gradient=_einsum_gradient)
for _op, _composition in (
    (ops.image.affine_grid, _affine_grid),
    (ops.fast_erf, _as(ops.erf)),
    (ops.fast_exp, _as(ops.exp)),
    (ops.fast_tanh, _as(ops.tanh)),
):
    _op.set_facets(composition=_composition)
