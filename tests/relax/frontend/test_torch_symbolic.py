"""Programs of PyTorch with symbolic sizes, and what is refused."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tvm.error import OpNotImplemented
from tvm.relax.frontend.torch import from_exported_program

from .test_torch import random, run, wrapped


def agrees(mod, model, tensors) -> None:
    """The module gives what the model gives."""
    expected = model(*tensors)
    expected = expected if isinstance(expected, tuple) else [expected]
    for ours, theirs in zip(run(mod, tensors), expected, strict=True):
        assert ours.shape == tuple(theirs.shape)
        np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-4, atol=1e-4)


def agrees_once(function, *tensors) -> None:
    model = wrapped(function)
    agrees(from_exported_program(torch.export.export(model, tensors)), model, list(tensors))


class Halves(nn.Module):
    """Images whose sizes are multiples of two, which nothing but the shape ``2 * h`` tells."""

    def forward(self, x):
        return torch.cat([F.interpolate(F.max_pool2d(x, 2), scale_factor=2.0), x], 1)


B, T_ = torch.export.Dim("b", min=3, max=64), torch.export.Dim("t", min=6, max=64)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.std(x, 1),
        lambda x: torch.var_mean(x, 0, correction=0, keepdim=True),
        lambda x: x.roll((1, -2), (0, 1)),
        lambda x: x.roll(3),
        lambda x: x.unfold(1, 3, 2),
        lambda x: torch.diagonal(x @ x.t(), 1),
        lambda x: torch.diagonal(x @ x.t(), -1),
        lambda x: F.instance_norm(x[None], eps=1e-3),
        lambda x: F.interpolate(x[None, None], size=(x.shape[0] * 2, x.shape[1]), mode="bilinear"),
        lambda x: x * x.shape[1] / (x.shape[1] ** 0.5) + x.shape[0] / 2,
        lambda x: torch.addmm(x[:, 0:1], x, x.t()),
        lambda x: torch.mv(x, x[0]) + torch.dot(x[0], x[1]),
        lambda x: torch.cat([x, x], 1)[None].split(1, 0)[0],
        lambda x: torch.logcumsumexp(x * 50, 1),
        lambda x: torch.cummax((x * 3).round(), 1),
        lambda x: torch.cummin(torch.where(x > 0.6, float("nan"), x), 0),
        lambda x: torch.median(x, 1),
        lambda x: torch.median(torch.where(x > 0.9, float("nan"), x), 0, keepdim=True),
        lambda x: torch.median((x * 9).int()),
        lambda x: torch.split(x, [x.shape[1] - 2, 2], 1),
        lambda x: torch.diagonal(x, 1) + torch.diagonal(x)[-1],
        lambda x: x.as_strided((2, 3), (1, 2), 1),
        lambda x: F.pixel_shuffle(x[None, None].expand(2, 8, -1, -1), 2),
        lambda x: F.pixel_unshuffle(x.repeat(2, 2)[None], 2),
        lambda x: F.channel_shuffle(x[None, None].expand(1, 4, -1, -1), 2),
        lambda x: torch.take(x, torch.tensor([[0, -1], [5, 3]])),
        lambda x: x.index_put((torch.tensor([0, 2]),), x[1:3], accumulate=True),
        lambda x: torch.ops.aten.index_put(
            x[None], (None, torch.tensor([0, 2])), torch.tensor(3.0)
        ),
        lambda x: torch.ops.aten.index_put(
            torch.stack([x, x], 1),
            (torch.tensor([0, -1]), None, torch.tensor([1, 2])),
            torch.tensor([[3.0], [4.0]]),
        ),
        lambda x: x.index_put((x > 0.5,), torch.tensor(2.0)),
        lambda x: x.index_put((x.sum(1) > 0,), x[0]),
        lambda x: torch.slice_scatter(x, x[:, :2], 1, 1, 5, 2),
        lambda x: x.scatter_reduce(1, (x > 0.5).long(), x, "mean"),
        lambda x: x.scatter_reduce(1, (x > 0.5).long()[:, :3], x, "amax", include_self=False),
        lambda x: torch.eye(x.shape[0], x.shape[1]) + x.new_full((x.shape[1],), 2.0),
        lambda x: torch.trace(x @ x.t()),
        lambda x: torch.addmv(x[:, 0], x, x[0], beta=2, alpha=0.5),
        lambda x: ((x * 9).int() ** 3, (x * 3).int() ** 7, 2 ** (x * 3).int()),
    ],
)
def test_functions_of_symbolic_sizes_agree_with_pytorch(function) -> None:
    model = wrapped(function)
    program = torch.export.export(model, (random(3, 7),), dynamic_shapes=({0: B, 1: T_},))
    mod = from_exported_program(program)
    for shape in ((3, 7), (5, 9)):
        agrees(mod, model, [random(*shape)])


def test_parts_of_symbolic_extents_are_as_many_as_pytorch_found() -> None:
    sizes = ({1: 3 * torch.export.Dim("t", min=3, max=20) - 2},)
    model = wrapped(lambda x: torch.tensor_split(x, 3, 1))
    mod = from_exported_program(torch.export.export(model, (random(2, 7),), dynamic_shapes=sizes))
    agrees(mod, model, [random(2, 10)])


class GroupedAttention(nn.Module):
    def forward(self, q, k, mask):
        causal = F.scaled_dot_product_attention(q[0], k.repeat(1, 2, 1, 1)[0], q[0], is_causal=True)
        return F.scaled_dot_product_attention(q, k, k, mask, enable_gqa=True), causal


def test_attention_of_grouped_heads_has_symbolic_lengths() -> None:
    tensors = [random(2, 4, 6, 8), random(2, 2, 6, 8), torch.ones(6, 6, dtype=torch.bool).tril()]
    sizes = ({2: T_}, {2: T_}, {0: T_, 1: T_})
    model = GroupedAttention()
    program = torch.export.export(model, tuple(tensors), dynamic_shapes=sizes)
    mod = from_exported_program(program)
    agrees(mod, model, tensors)
    mask = torch.ones(9, 9, dtype=torch.bool).tril()
    agrees(mod, model, [random(2, 4, 9, 8), random(2, 2, 9, 8), mask])


def test_sizes_may_be_multiples_of_symbols() -> None:
    sizes = ({2: 2 * torch.export.Dim("h", max=32), 3: 2 * torch.export.Dim("w", max=32)},)
    mod = from_exported_program(
        torch.export.export(Halves(), (random(1, 2, 8, 4),), dynamic_shapes=sizes)
    )
    agrees(mod, Halves(), [random(1, 2, 6, 10)])
    with pytest.raises(RuntimeError, match="axis 3 of the shape is 9, expected 8"):
        run(mod, [random(1, 2, 6, 9)])


def test_sizes_that_converters_need_are_told() -> None:
    program = torch.export.export(
        wrapped(lambda x: F.pad(x, (1, 2), mode="circular")),
        (random(3, 7),),
        dynamic_shapes=({1: T_},),
    )
    with pytest.raises(OpNotImplemented, match="pad.* of symbolic sizes"):
        from_exported_program(program)


def test_bounds_may_be_tensors() -> None:
    low, high = random(5) - 0.5, random(4, 1)
    agrees_once(lambda x: torch.clamp(x, low, high), random(4, 5))


def test_complex_numbers_within_a_model() -> None:
    agrees_once(lambda x: torch.fft.fft2(torch.fft.fft(x)).real, random(4, 6))
    program = torch.export.export(wrapped(lambda x: torch.fft.fft(x)), (random(4, 6),))
    with pytest.raises(OpNotImplemented, match="complex numbers, which the model returns"):
        from_exported_program(program)


def test_powers_of_integers_are_exact():
    numbers = torch.tensor([3000, -3001, 7, -1, 0])
    model = wrapped(lambda x: x**5)
    mod = from_exported_program(torch.export.export(model, (numbers,)))
    (found,) = run(mod, [numbers])
    np.testing.assert_array_equal(found, (numbers**5).numpy())


@pytest.mark.parametrize("options", [{}, {"return_inverse": True}, {"return_counts": True}])
def test_distinct_elements(options):
    numbers = torch.tensor([3, 1, 2, 3, 1])
    agrees_once(lambda x: torch.unique(x, **options), numbers)
    agrees_once(lambda x: torch.unique_consecutive(x, **options), numbers)
