from __future__ import annotations

import pytest
import torch
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import tvm
from tvm import relay
from tvm.error import OpNotImplemented

from .running import assert_close, run

torch.manual_seed(0)


def check(model: torch.nn.Module, *inputs: torch.Tensor) -> None:
    """Export a model, import it and compare all outputs."""
    program = torch.export.export(model.eval(), inputs)
    mod, params = relay.frontend.from_exported_program(program)
    names = [v.name_hint for v in mod["main"].params if v.name_hint not in params]
    arrays = {name: t.numpy() for name, t in zip(names, inputs, strict=True)}
    with torch.no_grad():
        expected = model(*inputs)
    wanted = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    for actual, tensor in zip(run(mod, params, arrays), wanted, strict=True):
        assert_close(actual, tensor.numpy())


def test_convolutions_and_norms() -> None:
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.SiLU(),
        torch.nn.MaxPool2d(2), torch.nn.GroupNorm(2, 8), torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(), torch.nn.Linear(8, 4), torch.nn.LayerNorm(4),
    )  # fmt: skip
    check(model, torch.randn(2, 3, 8, 8))


def test_attention() -> None:
    check(torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True), torch.randn(1, 5, 16))


def test_recurrent_layers() -> None:
    check(torch.nn.GRU(4, 5), torch.randn(3, 2, 4))


class _Several(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(6.0).reshape(3, 2))

    def forward(self, x, index):
        values, places = x.topk(2, dim=1)
        return values, places, self.table[index], torch.tensor([1.0, 2.0]) + x[:, :2]


def test_several_outputs_buffers_and_constants() -> None:
    check(_Several(), torch.randn(3, 4), torch.tensor([2, 0]))


class InPlace(torch.nn.Module):
    def forward(self, x):
        y = x.clone()
        y[0] = 1
        y.view(-1)[1:3].mul_(5)
        return y


def test_programs_that_write_in_place_are_imported_as_they_are() -> None:
    x = torch.randn(3, 3)
    program = torch.export.export(InPlace(), (x,))
    mod, params = relay.frontend.from_exported_program(program, run_ep_decomposition=False)
    assert_close(run(mod, params, {"x": x.numpy()})[0], InPlace()(x).numpy())


class Inverse(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.inv(x), torch.linalg.cholesky(x)


def test_operators_that_torch_keeps_in_order() -> None:
    check(Inverse(), torch.eye(3) * 2 + 0.5)


def test_weights_keep_their_names() -> None:
    program = torch.export.export(torch.nn.Linear(3, 2), (torch.randn(1, 3),))
    _, params = relay.frontend.from_exported_program(program)
    assert set(params) == {"weight", "bias"}


def test_unknown_operators_are_listed() -> None:
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.linalg.ldl_factor(x)[0] + torch.special.airy_ai(x)[0]

    program = torch.export.export(Model(), (torch.randn(3, 3),))
    with pytest.raises(OpNotImplemented) as info:
        relay.frontend.from_exported_program(program)
    assert "linalg_ldl_factor" in str(info.value) and "airy_ai" in str(info.value)


def test_converters_of_users_are_used() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.randn(2),))
    converters = {"aten::relu": lambda inputs, types: relay.negative(inputs[0])}
    mod, _ = relay.frontend.from_exported_program(program, converters)
    assert "negative" in str(mod)


class Attention(torch.nn.Module):
    """Sizes in views, ranges, slices, masks and sums."""

    def __init__(self) -> None:
        super().__init__()
        self.project = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        batch, length, width = x.shape
        q = self.project(x).view(batch, length, 2, 4).transpose(1, 2)
        seen = torch.ones(length, length, dtype=torch.bool).tril()
        scores = (q @ q.transpose(-1, -2)).masked_fill(~seen, float("-inf")).softmax(-1)
        joined = (scores @ q).transpose(1, 2).reshape(batch, length, width)
        positions = torch.arange(length)[None, :].expand(batch, -1)
        return self.norm(joined) + positions[..., None], x[:, -1], x[:, : length - 1].flatten(1)


@torch.no_grad()
def test_open_sizes_are_read_at_run_time() -> None:
    model = Attention().eval()
    sizes = ({0: torch.export.Dim("batch", min=2), 1: torch.export.Dim("length", min=3)},)
    program = torch.export.export(model, (torch.randn(2, 5, 8),), dynamic_shapes=sizes)
    _check_open_sizes(model, *relay.frontend.from_exported_program(program))


@torch.no_grad()
def test_open_sizes_of_a_trace_are_read_at_run_time() -> None:
    model = Attention().eval()
    script = torch.jit.trace(model, torch.randn(2, 5, 8))
    shape = (relay.Any(), relay.Any(), 8)
    _check_open_sizes(model, *relay.frontend.from_pytorch(script, [("x", shape)]))


def _check_open_sizes(model, mod, params) -> None:
    call = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    for batch, length in ((2, 5), (4, 7)):
        x = torch.randn(batch, length, 8)
        for actual, expected in zip(call(x.numpy(), **params), model(x), strict=True):
            assert_close(actual.numpy(), expected.numpy())


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match=r"torch\.export"):
        relay.frontend.from_exported_program(torch.nn.ReLU())


class Factors(torch.nn.Module):
    def forward(self, x):
        factor, pivots = torch.linalg.ldl_factor(x @ x.transpose(1, 2))
        return torch.special.airy_ai(x).sum() + factor, pivots


def test_operators_in_torch_take_open_extents() -> None:
    class Airy(torch.nn.Module):
        def forward(self, x):
            return torch.special.airy_ai(x) + 1

    dims = ({0: torch.export.Dim("n", min=2, max=99)},)
    program = torch.export.export(Airy(), (torch.ones(4, 3),), dynamic_shapes=dims)
    with pytest.warns(UserWarning, match="airy_ai"):
        mod, _ = relay.frontend.from_exported_program(program, fallback=True)
    x = torch.randn(7, 3)
    result = relay.create_executor("vm", mod, tvm.cpu(), "llvm").evaluate()(x.numpy())
    assert_close(result.numpy(), Airy()(x).numpy())


def test_operators_that_are_unknown_can_run_in_torch() -> None:
    x = torch.randn(2, 3, 4)
    program = torch.export.export(Factors().eval(), (x,))
    with pytest.raises(OpNotImplemented, match="nodes of 2 unsupported operators") as info:
        relay.frontend.from_exported_program(program)
    assert "linalg_ldl_factor" in str(info.value) and "airy_ai" in str(info.value)
    assert "fallback=True" in str(info.value)
    with pytest.warns(UserWarning, match="airy_ai"), pytest.warns(UserWarning, match="ldl_factor"):
        mod, params = relay.frontend.from_exported_program(program, fallback=True)
    arrays = {mod["main"].params[0].name_hint: x.numpy()}
    for actual, expected in zip(run(mod, params, arrays), Factors()(x), strict=True):
        assert_close(actual, expected.numpy())


def _last_of_scan(x):
    return scan(lambda carry, row: (carry + row, carry * row), torch.zeros(3), x)


HIGHER_ORDER = {
    "cond": lambda x: torch.cond(x.sum() > 0, torch.sin, lambda x: x.cos() * 2, (x,)),
    "while": lambda x: while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x * 1.5), (torch.tensor(0), x)
    ),
    "scan": _last_of_scan,
    "map": lambda x: torch_map(lambda row, y: row.sin() + y, x, x[0] * 2),
}


class Calling(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x):
        return HIGHER_ORDER[self.name](x)


@pytest.mark.parametrize("name", HIGHER_ORDER)
def test_operators_on_graphs(name: str) -> None:
    x = torch.randn(5, 3)
    mod, _ = relay.frontend.from_exported_program(torch.export.export(Calling(name), (x,)))
    found = relay.create_executor("vm", mod=mod, target="llvm").evaluate()(x.numpy())
    expected = HIGHER_ORDER[name](x)
    pairs = [(found, expected)] if hasattr(found, "numpy") else zip(found, expected, strict=True)
    for actual, tensor in pairs:
        assert_close(actual.numpy(), tensor.numpy())
