"""Operators of relax tell which argument does not fit, and name themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tvm import relax, tir
from tvm.error import TVMError
from tvm.relax import op

N = tir.Var("n", "int64")
X = relax.Var("x", relax.TensorStructInfo((N, 4), "float32"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: op.split(X, [N]), "relax.split cannot take .*: an integer is required, got n"),
        (lambda: op.topk(X, axis=None), "relax.topk cannot take axis=None: an integer is required"),
        (lambda: op.tile(X, [None]), "relax.tile .*None"),
        (lambda: op.permute_dims(X, [None, 0]), "relax.permute_dims cannot take axes=.*None"),
        (lambda: op.unique(X, return_index="yes"), "relax.unique has no struct info .*'value'"),
        (lambda: op.nn.attention_var_len(X, X, X, 0, []), "relax.nn.attention_var_len"),
    ],
)
def test_arguments_that_do_not_fit(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TVMError, match=message):
        relax.BlockBuilder().normalize(make())
