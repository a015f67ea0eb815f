"""``torch.compile`` where gradients are needed: losses, gradients and states agree with eager ones."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from tvm.error import TVMError
from tvm.torch_compile import backend
from tvm.torch_compile.backend import pytvm
from tvm.torch_compile.options import TRIALS, Options
from tvm.torch_compile.program import Program

torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield


class Transformer(torch.nn.Module):
    """Tokens to scores, with one layer of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(20, 16)
        self.positions = torch.nn.Parameter(torch.zeros(6, 16))
        self.layer = torch.nn.TransformerEncoderLayer(
            16, 2, 32, dropout=0.0, batch_first=True, activation="gelu"
        )
        self.head = torch.nn.Linear(16, 20, bias=False)
        self.head.weight = self.embedding.weight  # tied

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(self.embedding(tokens) + self.positions))


def _cnn() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=2),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 4),
    )  # fmt: skip


def _mlp() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))


MODELS = {
    "mlp": (_mlp, lambda: torch.randn(5, 8), (5,), 4),
    "cnn": (_cnn, lambda: torch.randn(4, 3, 8, 8), (4,), 4),
    "transformer": (Transformer, lambda: torch.randint(0, 20, (3, 6)), (3, 6), 20),
}


@pytest.mark.parametrize("name", MODELS)
def test_training_loop_agrees_with_eager(name: str) -> None:
    make, draw, shape, classes = MODELS[name]
    model = make().train()
    other = copy.deepcopy(model)
    ours = torch.compile(other, backend=pytvm)
    optimizers = [torch.optim.SGD(m.parameters(), 0.1, momentum=0.9) for m in (model, other)]
    for _ in range(3):
        data, labels = draw(), torch.randint(0, classes, shape).flatten()
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="pytvm leaves")
            losses = [F.cross_entropy(m(data).flatten(0, -2), labels) for m in (model, ours)]
            for optimizer, loss in zip(optimizers, losses, strict=True):
                optimizer.zero_grad()
                loss.backward()
        torch.testing.assert_close(losses[1], losses[0], rtol=1e-4, atol=1e-5)
        expected = [p.grad for p in model.parameters()]
        torch.testing.assert_close(
            [p.grad for p in other.parameters()], expected, rtol=1e-4, atol=1e-5
        )
        for optimizer in optimizers:
            optimizer.step()
    # batch normalisation's running statistics are part of the state
    torch.testing.assert_close(other.state_dict(), model.state_dict(), rtol=1e-4, atol=1e-5)


def _written(x, y):
    z = x * 2
    z.add_(1)
    y.mul_(2)
    return z.sum() + (y * x).sum()


def _nested(x, flag=None, scale=2.0):
    return x * scale, None, {"sin": x.sin(), "count": 3}


class Counted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count += 1
        return torch.nn.functional.dropout(x, 0.5) * self.factor + self.count


def _leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


FUNCTIONS = {
    "an input is written": (_written, (_leaf(3, 4), torch.ones(3, 4)), {}),
    "outputs are views of inputs": (lambda x: (x, x.t(), x.view(-1), x * 2), (_leaf(3, 4),), {}),
    "nothing, numbers and keywords": (_nested, (_leaf(3, 4),), {"scale": 3.0}),
    "integers and booleans": (
        lambda x, i, b: x[i] * b[:, None],
        (_leaf(5, 4), torch.tensor([0, 2, 2]), torch.tensor([True, False, True])),
        {},
    ),
    "an input without its axes in order": (
        lambda x, y: x @ y,
        (torch.randn(4, 3).t().requires_grad_(), _leaf(4, 5)),
        {},
    ),
    "a buffer is written, and numbers are drawn": (Counted(), (_leaf(2, 3),), {}),
    "normalisation in inference": (torch.nn.BatchNorm1d(3).eval(), (_leaf(2, 3),), {}),
    "no gradient goes through": (lambda x: x.detach() * 2, (_leaf(3),), {}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_agree_with_eager(name: str) -> None:
    function, inputs, keywords = FUNCTIONS[name]
    copies = [[x.detach().clone().requires_grad_(x.requires_grad) for x in inputs] for _ in "ab"]
    functions = [function, torch.compile(copy.deepcopy(function), backend=pytvm)]
    results = []
    for run, given in zip(functions, copies, strict=True):
        torch.manual_seed(1)
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="pytvm leaves")
            result = run(*given, **keywords)
            total = sum([
                (t * torch.arange(t.numel()).reshape(t.shape)).sum()
                for t in torch.utils._pytree.tree_leaves(result)
                if isinstance(t, torch.Tensor) and t.requires_grad
            ])  # fmt: skip
            if isinstance(total, torch.Tensor):
                total.backward()
        results.append((result, given, [x.grad for x in given if x.is_leaf]))
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


def test_open_sizes_have_gradients() -> None:
    layer = torch.nn.Linear(4, 3)
    compiled = torch.compile(layer, backend=pytvm, dynamic=True)
    for count in (2, 5):
        x = _leaf(count, 4)
        (actual,) = torch.autograd.grad((compiled(x) ** 2).sum(), x)
        (expected,) = torch.autograd.grad((layer(x) ** 2).sum(), x)
        torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_weights_are_constants_until_they_are_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Program] = []

    def noted(*args) -> Program:
        made.append(Program(*args))
        return made[-1]

    monkeypatch.setattr(backend, "Program", noted)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout()).eval()
    compiled, x = torch.compile(model, backend=pytvm), torch.randn(2, 4)
    compiled(x)  # gradients are possible, nobody asks for them
    assert len(made) == 1 and len(made[0]._weights) == 2
    with torch.no_grad():
        model[0].weight.mul_(2)
    torch.testing.assert_close(compiled(x), model(x))
    model.train()
    compiled(x)
    assert [len(program._weights) for program in made] == [2, 0, 0]


def test_only_graphs_of_unknown_operators_run_in_torch() -> None:
    @torch.compile(backend=pytvm)
    def function(x):
        y = (x * 2).sin()
        torch._dynamo.graph_break()
        return torch.special.airy_ai(y.detach()) * y

    x = _leaf(3)
    with pytest.warns(UserWarning, match="pytvm leaves a graph to PyTorch: .*airy_ai") as found:
        result = function(x)
        result.sum().backward()
    assert len([w for w in found if "pytvm leaves" in str(w.message)]) == 1
    y = (x * 2).sin()
    torch.testing.assert_close(result, torch.special.airy_ai(y.detach()) * y)


def test_graphs_without_derivatives_run_in_torch() -> None:
    @torch.compile(backend=pytvm)
    def function(x):
        return torch.special.zeta(x + 2, torch.full((3,), 2.0)) * 2

    x = _leaf(3)
    with pytest.warns(UserWarning, match="pytvm leaves a graph to PyTorch: .*zeta"):
        result = function(x)
    torch.testing.assert_close(result, torch.special.zeta(x + 2, torch.full((3,), 2.0)) * 2)


def test_modes_stand_for_options() -> None:
    assert Options.of(None, None) == Options.of("default", {}) == Options.of("reduce-overhead", {})
    assert Options.of("max-autotune", {"opt_level": 2}) == Options(opt_level=2, trials=TRIALS)
    model = torch.compile(torch.nn.ReLU(), backend=pytvm, mode="reduce-overhead")
    assert torch.equal(model(-torch.ones(2)), torch.zeros(2))


@pytest.mark.parametrize(
    ("mode", "options", "message"),
    [
        ("max-autotun", None, "modes default, .*got 'max-autotun'.*\n.*'max-autotune'"),
        (None, {"opt_levle": 2}, "options target, .*got 'opt_levle'.*\n.*'opt_level'"),
        (None, {"opt_level": "2"}, "opt_level .* integer from 0 on, got '2'"),
        (None, {"max_shapes": 0}, "max_shapes .* integer from 1 on, got 0"),
        (None, {"tuning_records": 3}, "tuning_records .* path of a file, got 3"),
        (None, {"target": "llwm"}, "llwm"),
        (None, ["target"], "options as a dictionary"),
    ],
)
def test_what_no_option_is_is_rejected(mode, options, message: str) -> None:
    with pytest.raises((TVMError, ValueError), match=message):
        Options.of(mode, options)


def test_kernels_are_measured_once(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    options = {"trials": 1, "tuning_records": str(path)}
    layer, x = torch.nn.Linear(32, 48), torch.randn(4, 32)
    counts = []
    for _ in range(2):
        torch._dynamo.reset()
        with torch.no_grad():
            compiled = torch.compile(layer, backend=pytvm, options=options)
            torch.testing.assert_close(compiled(x), layer(x), rtol=1e-4, atol=1e-5)
        counts.append(len(path.read_text().splitlines()))
    assert counts[0] >= 1 and counts[1] == counts[0]
