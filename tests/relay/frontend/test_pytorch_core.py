"""The operators that programs of torch.export consist of: none is missing; gradients among them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tvm.relay.frontend.common import ExprFolder
from tvm.relay.frontend.pytorch.decomposition import Decomposer
from tvm.relay.frontend.pytorch.fx import find_converter
from tvm.relay.frontend.pytorch.registry import CONVERTERS

from .test_exported_program import check as check_exported
from .test_pytorch import Wrap, check

torch.manual_seed(0)
ATEN = torch.ops.aten


def core_operators() -> list[Any]:
    """All overloads that torch tags as core ATen."""
    found = []
    for name in torch._C._dispatch_get_all_op_names():
        library, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        packet = getattr(ATEN, base, None) if library == "aten" else None
        operator = getattr(packet, overload or "default", None)
        if operator is not None and torch.Tag.core in operator.tags:
            found.append(operator)
    return found


def test_core_aten_is_complete() -> None:
    operators = core_operators()
    decomposer = Decomposer(CONVERTERS, ExprFolder())
    missing = [
        str(op)
        for op in operators
        if find_converter(CONVERTERS, op) is None and not decomposer.knows(op)
    ]
    assert len(operators) > 150 and missing == []


CONVOLUTIONS = {
    "plain": ((2, 4, 9, 8), (6, 4, 3, 2), (2, 1), (1, 0), (1, 2), False, (0, 0), 1),
    "in groups": ((2, 4, 7, 7), (6, 2, 3, 3), (2, 2), (1, 1), (1, 1), False, (0, 0), 2),
    "transposed": ((2, 4, 5, 5), (4, 3, 3, 3), (2, 2), (1, 1), (1, 1), True, (1, 1), 1),
    "of rows": ((2, 3, 11), (4, 3, 3), (2,), (2,), (2,), False, (0,), 1),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_gradients_of_convolutions(name: str) -> None:
    sizes, extents, *options, groups = CONVOLUTIONS[name]
    x, weight = torch.randn(sizes), torch.randn(extents)
    out = torch.convolution(x, weight, None, *options, groups)
    channels = [out.shape[1]]

    def gradients(grad, x, weight):
        return ATEN.convolution_backward(
            grad, x, weight, channels, *options, groups, [True, True, True]
        )

    check_exported(Wrap(gradients), torch.randn_like(out), x, weight)


def test_gradients_of_pooling() -> None:
    x = torch.randn(2, 3, 7, 8)

    def means(grad, x):
        return ATEN.avg_pool2d_backward(grad, x, [3, 2], [2, 2], [1, 0], True, False, None)

    check(means, torch.randn(2, 3, 4, 4), x)
    check(
        lambda g, x: ATEN.avg_pool2d_backward(g, x, [2, 2], [], [0, 0], False, True, 3),
        torch.randn(2, 3, 3, 4), x,
    )  # fmt: skip
    check(lambda g, x: ATEN._adaptive_avg_pool2d_backward(g, x), torch.randn(2, 3, 3, 5), x)


def test_linear_takes_vectors_and_biases_of_other_ranks() -> None:
    x, weight = torch.randn(2, 4), torch.randn(3, 4)
    check(F.linear, x, weight, torch.randn(2, 3))
    check(F.linear, x, weight[0])
    check(F.linear, torch.randn(5, 2, 4), weight, torch.randn(3))


def test_no_indices_scatter_nothing() -> None:
    index = torch.empty((0,), dtype=torch.int64)
    check(lambda x, source: x.scatter(0, index, source), torch.randn(2, 4), torch.randn(2, 1))
