"""Counts, divisors, losses and pooling that torch has no decomposition for."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.torchvision_operators import OPERATORS
from tvm import relay

from .running import assert_close
from .test_pytorch import check

torch.manual_seed(0)
X = torch.rand(20)


def test_occurrences_of_numbers_are_counted() -> None:
    def counts(x, w):
        return torch.bincount(x), torch.bincount(x, minlength=9), torch.bincount(x, w)

    x, w = torch.tensor([0, 2, 2, 5]), torch.tensor([0.5, 1.0, 2.0, -1.0])
    script = torch.jit.trace(counts, (x, w), check_trace=False)
    mod, _ = relay.frontend.from_pytorch(script, [("x", ((4,), "int64")), ("w", (4,))])
    results = relay.create_executor("vm", mod=mod).evaluate()(x.numpy(), w.numpy())
    for actual, expected in zip(results, counts(x, w), strict=True):
        assert_close(actual.numpy(), expected.numpy())


def test_classes_are_counted_if_their_number_is_not_given() -> None:
    x = torch.tensor([1, 4, 0])
    script = torch.jit.trace(F.one_hot, x, check_trace=False)
    mod, _ = relay.frontend.from_pytorch(script, [("x", ((3,), "int64"))])
    found = relay.create_executor("vm", mod=mod).evaluate()(x.numpy())
    assert_close(found.numpy(), F.one_hot(x).numpy())


@pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_booleans_are_reduced(reduce: str, include_self: bool) -> None:
    x, source = torch.tensor([True, False, True, False]), torch.tensor([True, False, False, True])
    index = torch.tensor([0, 1, 1, 2])
    check(lambda x, s: x.scatter_reduce(0, index, s, reduce, include_self=include_self), x, source)


HISTOGRAMS = {
    "bins": lambda x, w: torch.histogram(x, 5),
    "weights": lambda x, w: torch.histogram(x, 5, range=(0.0, 2.0), weight=w, density=True),
    "edges": lambda x, w: torch.histogram(x, torch.tensor([0.0, 0.2, 0.7, 1.0])),
    "two_axes": lambda x, w: torch.histogramdd(
        x.view(10, 2), [2, 3], range=[0.0, 1.0, 0.0, 0.5], weight=w[:10], density=True
    ),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_intervals_are_counted(name: str) -> None:
    check(HISTOGRAMS[name], X, torch.rand(20))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8])
def test_common_divisors_and_multiples(dtype: torch.dtype) -> None:
    a = torch.tensor([12, -18, 0, 7, 0, 89], dtype=dtype)
    b = torch.tensor([8, 27, 5, 0, 0, 55], dtype=dtype)
    check(lambda a, b: (torch.gcd(a, b), torch.lcm(a, b)), a, b)


def test_targets_of_margins_end_before_the_first_missing_one() -> None:
    x, target = torch.randn(2, 5), torch.tensor([[0, 1, -1, 2, 3], [2, -1, 0, 0, 0]])
    check(
        lambda x, t: (F.multilabel_margin_loss(x, t), F.multilabel_margin_loss(x[0], t[0])),
        x, target,
    )  # fmt: skip


def test_alignments_of_targets_with_steps() -> None:
    scores = torch.randn(6, 3, 5).log_softmax(-1)
    targets = torch.tensor([[1, 2, 2], [3, 0, 0], [4, 1, 0]])
    steps, lengths = torch.tensor([6, 5, 2]), torch.tensor([3, 1, 3])

    def losses(x, t):
        flat = torch.tensor([1, 2, 2, 3, 4, 1])
        return (
            F.ctc_loss(x, t, steps, lengths, reduction="none", zero_infinity=True),
            F.ctc_loss(x, flat, (6, 5, 4), (3, 1, 2), reduction="sum"),
            F.ctc_loss(x[:, 0], t[0], (6,), (3,), blank=4),
        )

    check(losses, scores, targets)


def test_pooling_by_fractions() -> None:
    pool = torch._C._nn.fractional_max_pool2d
    check(lambda x, s: pool(x, (2, 3), (4, 5), s), torch.rand(2, 3, 9, 11), torch.rand(2, 3, 2))


def test_windows_are_what_torch_makes_of_numbers() -> None:
    check(lambda x: x * torch.hamming_window(20) + torch.blackman_window(20, periodic=False), X)


def test_decompositions_that_write_in_place() -> None:
    check(lambda x: torch.vander(x[:4], 3, increasing=True), X)


def _moved_window(x, weight, offset, mask):
    """One image, a window of 3 by 3 whose places move, stride 2 and padding 1, read one by one."""
    padded = F.pad(x, (9, 9, 9, 9))
    result = torch.zeros(weight.shape[0], *offset.shape[1:])
    for row in range(offset.shape[1]):
        for column in range(offset.shape[2]):
            for k in range(9):
                down, right = offset[2 * k : 2 * k + 2, row, column]
                y, z = 2 * row - 1 + k // 3 + down + 9, 2 * column - 1 + k % 3 + right + 9
                i, j = int(y), int(z)
                corners = padded[:, i : i + 2, j : j + 2]
                shares = torch.outer(
                    torch.stack([i + 1 - y, y - i]), torch.stack([j + 1 - z, z - j])
                )
                read = (corners * shares).sum((1, 2)) * mask[k, row, column]
                result[:, row, column] += weight[:, :, k // 3, k % 3] @ read
    return result


OPERATORS.define(
    "deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor"
)
OPERATORS.impl(
    "deform_conv2d",
    lambda x, w, offset, mask, *_: torch.stack(list(map(_moved_window, x, [w] * 2, offset, mask))),
    "CPU",
)


def test_windows_move_as_data_says() -> None:
    weight = torch.randn(3, 4, 3, 3)
    offset, mask = torch.randn(2, 18, 3, 4), torch.rand(2, 9, 3, 4)

    def moved(x, offset, mask):
        return torch.ops.torchvision.deform_conv2d(
            x, weight, offset, mask, torch.zeros(3), 2, 2, 1, 1, 1, 1, 1, 1, True
        )

    check(moved, torch.randn(2, 4, 6, 7), offset, mask)
