"""Operators told by others, of which their gradients are made.

Their kernels are their own: a composition is for `relay.transform.gradient` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.type import Type
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.expr import Call, const

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


for _op, _composition in ((ops.image.affine_grid, _affine_grid),):
    _op.set_facets(composition=_composition)
