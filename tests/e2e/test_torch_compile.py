"""``torch.compile``: torch's own backend "tvm" on this package, and our own one."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path

import pytest
import tomllib
import torch

from tvm.torch_compile.backend import pytvm

torch.manual_seed(0)
MODELS = {
    "mlp": (
        torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)),
        torch.randn(3, 8),
    ),
    "cnn": (
        torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
            torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(8 * 16, 5),
        ),
        torch.randn(2, 3, 8, 8),
    ),
    "attention": (
        torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(1, 5, 16)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_compiled_model_agrees_with_eager(name: str) -> None:
    model, example = MODELS[name]
    model.eval()
    # torch's backend takes no open sizes, which a second model of the same class would get
    compiled = torch.compile(model, backend="tvm", dynamic=False)
    with torch.no_grad():
        for data in (example, example * 2):
            torch.testing.assert_close(compiled(data), model(data), rtol=1e-4, atol=1e-5)


def test_options_of_the_torch_backend() -> None:
    options = {"scheduler": None, "opt_level": 1}
    plain = torch.compile(lambda x: x.relu(), backend="tvm", options=options)
    assert torch.equal(plain(-torch.ones(2)), torch.zeros(2))


def test_compiled_function_gives_several_outputs() -> None:
    @torch.compile(backend="tvm")
    def several(x, y):
        return x @ y, x > 0, x.sum()

    x, y = torch.randn(4, 4), torch.randn(4, 4)
    product, positive, total = several(x, y)
    torch.testing.assert_close(product, x @ y)
    assert torch.equal(positive, x > 0)
    torch.testing.assert_close(total, x.sum())


def _convolutional() -> torch.nn.Module:
    return MODELS["cnn"][0].eval()


def test_backend_is_an_entry_point() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    groups = tomllib.loads(text)["project"]["entry-points"]
    for backend in ("pytvm", "classic_tvm"):
        module, _, name = groups["torch_dynamo_backends"][backend].partition(":")
        assert getattr(importlib.import_module(module), name) is pytvm


@torch.no_grad()
def test_each_shape_is_compiled() -> None:
    model = _convolutional()
    compiled = torch.compile(model, backend=pytvm)
    for batch in (2, 3, 5, 2):
        data = torch.randn(batch, 3, 8, 8)
        torch.testing.assert_close(compiled(data), model(data), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_changed_weights_count() -> None:
    model = torch.nn.Linear(4, 4)
    compiled = torch.compile(model, backend=pytvm)
    data = torch.randn(2, 4)
    torch.testing.assert_close(compiled(data), model(data))
    model.weight.mul_(3.0)
    torch.testing.assert_close(compiled(data), model(data))
    model.weight.add_(1.0)
    torch.testing.assert_close(compiled(data), model(data))


def test_inputs_without_axes_and_written_inputs() -> None:
    @torch.compile(backend=pytvm)
    def scaled(x, factor):
        y = x * factor
        x.add_(1)
        return {"flat": y.view(-1), "more": [x.sum(), x > 0], "size": x.shape[0], "same": x}

    x = torch.ones(3, 4)
    result = scaled(x, torch.tensor(2.0))
    assert torch.equal(result["flat"], torch.full((12,), 2.0))
    assert torch.equal(x, torch.full((3, 4), 2.0))
    assert result["more"][0] == 24 and result["more"][1].all() and result["size"] == 3
    assert result["same"] is x


def test_inputs_that_lie_askew_in_memory_are_read() -> None:
    @torch.compile(backend=pytvm)
    def product(x):
        return x @ x.t()

    x = torch.randn(5, 4)
    torch.testing.assert_close(product(x[1:]), x[1:] @ x[1:].t())
    torch.testing.assert_close(product(x.t()), x.t() @ x)


def _swapped(x, y):
    first = x.clone()
    x.copy_(y)
    y.copy_(first)
    return x - y


def _several_types(x, y):
    return x // 3, (x % 2).bool() & (y > 1), x.half() * 2, torch.arange(3), x.clone(), 4, None


FUNCTIONS = {
    "numbers of the caller": (lambda x, factor: x * factor + factor, (torch.ones(3), 1.5)),
    "swapped inputs": (_swapped, (torch.ones(3), torch.zeros(3))),
    "writes through a view": (lambda x: x[1:].add_(1).sum() + x, (torch.ones(3, 2),)),
    "several types": (_several_types, (torch.arange(4), torch.arange(4.0))),
    "complex": (lambda x: (x * x.conj()).sum() + x, (torch.randn(3, dtype=torch.complex64),)),
    "bfloat16": (lambda x: torch.relu(x) @ x.t(), (torch.ones(2, 4).bfloat16(),)),
    "float64": (lambda x: x.sin() / 3, (torch.randn(3).double(),)),
    "vmap": (torch.vmap(lambda row: row.cumsum(0) / row.sum()), (torch.ones(3, 4),)),
    "an image with channels last": (
        lambda x: torch.nn.functional.avg_pool2d(x, 2),
        (torch.randn(1, 3, 4, 4).to(memory_format=torch.channels_last),),
    ),
    "no elements": (lambda x: x * 2, (torch.zeros(0, 3),)),
}  # fmt: skip


@torch.no_grad()
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_agrees_with_eager(name: str) -> None:
    function, inputs = FUNCTIONS[name]
    ours = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    theirs = [x.clone() if isinstance(x, torch.Tensor) else x for x in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing is left to PyTorch
        result = torch.compile(function, backend=pytvm, dynamic=False)(*ours)
    torch.testing.assert_close(result, function(*theirs), check_stride=True)
    torch.testing.assert_close(ours, theirs)


@torch.no_grad()
def test_running_statistics_are_written() -> None:
    norm, other = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4)
    data = torch.randn(8, 4)
    torch.testing.assert_close(torch.compile(norm, backend=pytvm)(data), other(data))
    torch.testing.assert_close(norm.state_dict(), other.state_dict())


def test_views_share_memory_with_inputs_and_outputs() -> None:
    @torch.compile(backend=pytvm)
    def views(x):
        y = x * 2 + 1
        return x.t()[1:], y, y[1], x * 1

    x = torch.zeros(2, 3)
    part, whole, row, copy = views(x)
    x[0, 2] = 5
    whole[1, 1] = 7
    assert part.shape == (2, 2) and part[1, 0] == 5 and copy[0, 2] == 0
    assert row[1] == 7
    y = torch.zeros(3, 2).t()  # the same shape, other strides
    part = views(y)[0]
    y[0, 2] = 6
    assert part[1, 0] == 6


def test_written_inputs_that_share_memory_are_left_to_torch() -> None:
    @torch.compile(backend=pytvm)
    def shifted(x, y):
        x.add_(1)
        return y * 2

    data = torch.zeros(4)
    shifted(torch.zeros(3), torch.zeros(3))
    assert torch.equal(shifted(data[:3], data[1:]), torch.tensor([2.0, 2.0, 0.0]))


@torch.no_grad()
def test_sizes_marked_as_dynamic_differ() -> None:
    compiled = torch.compile(lambda x: x.sum(0) + x.shape[0], backend=pytvm, fullgraph=True)
    for length in (3, 5):
        x = torch.randn(length, 4)
        torch._dynamo.mark_dynamic(x, 0)
        torch.testing.assert_close(compiled(x), x.sum(0) + length)


@torch.no_grad()
def test_numbers_that_operators_are_configured_by_may_be_inputs() -> None:
    def normalised(x, epsilon, factor):
        return torch.nn.functional.layer_norm(x, [4], eps=epsilon) * factor

    compiled = torch.compile(normalised, backend=pytvm, dynamic=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # nothing is left to PyTorch
        for epsilon, factor in ((1e-5, 2.0), (0.5, 3.0), (0.25, 3.0)):
            x = torch.randn(3, 4)
            torch.testing.assert_close(compiled(x, epsilon, factor), normalised(x, epsilon, factor))


def test_derivatives_inside_of_functions_are_computed() -> None:
    slope = torch.func.grad(lambda x: (x**3).sum())
    x = torch.randn(3)
    torch.testing.assert_close(torch.compile(slope, backend=pytvm)(x), slope(x))


def test_graph_of_unknown_operators_runs_in_torch_with_one_warning() -> None:
    @torch.compile(backend=pytvm)
    def singular(x):
        return torch.special.airy_ai(x)

    x = torch.randn(3, 3)
    with pytest.warns(UserWarning, match="leaves a graph to PyTorch.*airy_ai"):
        torch.testing.assert_close(singular(x), torch.special.airy_ai(x))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        singular(x)


def test_options_are_used() -> None:
    compiled = torch.compile(lambda x: x * 2 + 1, backend=pytvm, options={"opt_level": 0})
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0))


def test_random_numbers_are_pytorchs_and_differ_from_run_to_run() -> None:
    def noisy(x):
        noise = torch.randn(3) + torch.randint(0, 5, (3,)) + torch.rand_like(x)
        return torch.nn.functional.dropout(x, 0.5, training=True) + noise

    compiled, x = torch.compile(noisy, backend=pytvm), torch.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        assert not torch.equal(compiled(x), compiled(x))
    torch.manual_seed(3)
    actual = compiled(x)
    torch.manual_seed(3)
    torch.testing.assert_close(actual, noisy(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)),
        lambda x: torch.multinomial(x, 2).sum() * 0 + x,
    ],
)
def test_what_depends_on_data_is_left_to_pytorch(function) -> None:
    x = torch.rand(5)
    with pytest.warns(UserWarning, match="pytvm leaves a graph to PyTorch: .* graph computes"):
        actual = torch.compile(function, backend=pytvm)(x)
    torch.testing.assert_close(actual, function(x))


def test_norms_of_half_precision_have_wider_weights() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)).eval()
    compiled, x = torch.compile(model, backend=pytvm), torch.randn(3, 16)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        actual, expected = compiled(x), model(x)
    torch.testing.assert_close(actual, expected, rtol=3e-2, atol=3e-2)


def test_groups_of_heads_share_keys() -> None:
    def attend(q, k):
        attention = torch.nn.functional.scaled_dot_product_attention
        return attention(q, k, k, is_causal=True, enable_gqa=True)

    q, k = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8)
    torch.testing.assert_close(torch.compile(attend, backend=pytvm)(q, k), attend(q, k))


@torch.no_grad()
def test_results_that_come_out_equal_are_all_written() -> None:
    x, edges = torch.tensor([-1.0, 0.0, 0.3]), torch.tensor([0.0, 0.5])

    def places(x: torch.Tensor, edges: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.bucketize(x, edges, right=True), x * 2, torch.searchsorted(edges, x, right=True)
        )  # fmt: skip

    compiled = torch.compile(places, backend=pytvm)
    for data in (x, x + 0.4):
        for found, wanted in zip(compiled(data, edges), places(data, edges), strict=True):
            assert torch.equal(found, wanted)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@torch.no_grad()
def test_images_are_resized_by_the_factors_not_by_the_rounded_extents(mode: str) -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(x, scale_factor=(1.7, 0.6), mode=mode)

    image = torch.randn(1, 2, 5, 6)
    compiled = torch.compile(resized, backend=pytvm)
    torch.testing.assert_close(compiled(image), resized(image), rtol=1e-4, atol=1e-5)
