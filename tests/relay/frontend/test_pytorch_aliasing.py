"""Views, writes in place and functions of torch.autograd, against PyTorch."""

from __future__ import annotations

import pytest
import torch

from tvm import relay
from tvm.error import TVMError

from .running import assert_close
from .test_pytorch import Wrap, check

torch.manual_seed(0)
X = torch.randn(2, 3, 4)


def check_in_vm(function, *inputs: torch.Tensor) -> None:
    """Compare with PyTorch where sizes are known at run time only."""
    script = torch.jit.trace(Wrap(function), inputs, check_trace=False)
    infos = [(f"x{i}", (tuple(t.shape), str(t.dtype).split(".")[1])) for i, t in enumerate(inputs)]
    mod, params = relay.frontend.from_pytorch(script, infos)
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    found = call(*[t.numpy() for t in inputs], **params)
    expected = function(*inputs)
    if isinstance(expected, torch.Tensor):
        found, expected = [found], [expected]
    for actual, tensor in zip(found, expected, strict=True):
        assert_close(actual.numpy(), tensor.numpy())


def test_strided_view_of_a_permuted_tensor() -> None:
    check(lambda x: x.as_strided((2, 2), (2, 1), 1), X)
    check(lambda x: x.transpose(0, 2).as_strided((2, 5), (2, 1)), X)
    check(lambda x: x.reshape(6, 4)[2:].as_strided((2, 3), (4, 2)), X)


@pytest.mark.parametrize("offset", [None, 0])
def test_strided_views_beyond_a_view_are_refused(offset: int | None) -> None:
    sizes = (2, 2) if offset == 0 else (4, 4)
    script = torch.jit.trace(lambda x: (x * 1)[:1].as_strided(sizes, (4, 1), offset), X)
    with pytest.raises(TVMError, match="no view of another"):
        relay.frontend.from_pytorch(script, [("x", (2, 3, 4))])


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        first = torch.relu(x)
        return first * 2, first + y

    @staticmethod
    def backward(ctx, *gradients):
        raise NotImplementedError


def test_functions_of_autograd_are_what_their_forward_computes() -> None:
    check(lambda x: tuple(a - x for a in Doubled.apply(x, x.abs())), X)


def test_elements_are_written_and_read_where_the_run_says() -> None:
    def written(x, place, value):
        result = x.clone()
        result[place] = value
        result[:, place] += 1
        return result, x[place]

    for place in (1, -1):
        check(written, torch.randn(3, 3), torch.tensor(place), torch.randn(3))


def test_first_rows_are_written_as_many_as_the_run_says() -> None:
    def packed(x, mask):
        result = torch.zeros(5, 2)
        result[: mask.nonzero().shape[0]] = x[mask]
        return result

    mask = torch.tensor([True, False, True, False, True])
    check_in_vm(packed, torch.randn(5, 2), mask)


def test_places_where_a_condition_holds() -> None:
    check_in_vm(lambda x: torch.where(x > 0)[1], X)


def test_nothing_is_joined_to_something() -> None:
    check(lambda x: torch.cat([torch.tensor([]).to(x.dtype), x], -2), X)


def test_numbers_keep_the_type_of_a_tensor() -> None:
    check(lambda x: (x / 3, torch.atan2(x, torch.tensor(2.0)), x.sin() / 0.5), X.double())


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
def test_images_are_smoothed_when_they_shrink(mode: str) -> None:
    resize = torch.nn.functional.interpolate
    check(lambda x: resize(x, size=(5, 13), mode=mode, antialias=True), torch.randn(1, 2, 8, 11))


def test_rows_of_which_the_number_is_not_known_are_taken_apart() -> None:
    def first_two(x):
        return tuple(torch.nonzero(x > 0).unbind(0)[:2])

    script = torch.jit.trace(first_two, torch.ones(3), check_trace=False)
    mod, params = relay.frontend.from_pytorch(script, [("x", (3,))])
    call = relay.create_executor("debug", mod=mod).evaluate()
    x = torch.tensor([-1.0, 1.0, 2.0])
    for actual, expected in zip(call(x.numpy(), **params), first_two(x), strict=True):
        assert_close(actual.numpy(), expected.numpy())


def test_axes_may_change_in_place() -> None:
    def changed(x):
        y = x + 1
        y.unsqueeze_(1).mul_(2)
        y.squeeze_(1).transpose_(0, 1)
        return y * 3

    check(changed, X)


def test_nothing_is_put_where_a_constant_mask_chooses_nothing() -> None:
    def put(x):
        y, mask = x.clone(), torch.zeros(2, 3, 4, dtype=torch.bool)
        y[mask] = torch.zeros(0)
        y[mask[:, :, 0]] = torch.zeros(0, 4)
        return y

    check(put, X)
