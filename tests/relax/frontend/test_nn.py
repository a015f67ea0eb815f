"""Models written as classes: they compute what PyTorch's layers do, and export as specified."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

from tvm.relax.frontend import nn
from tvm.relax.frontend.nn import spec


def run(module: nn.Module, *args: torch.Tensor, params: Any = None) -> Any:
    """The result of ``forward``, with parameters of a layer of PyTorch."""
    names = list(inspect.signature(module.forward).parameters)[: len(args)]
    specs = {
        name: spec.Tensor(list(arg.shape), str(arg.dtype)[6:])
        for name, arg in zip(names, args, strict=True)
    }
    if params is not None:
        module.load_state_dict(params.state_dict())
    return module.jit({"forward": specs})["forward"](*args)


class Wrapped(nn.Module):
    """A layer without its optional arguments."""

    def __init__(self, layer: nn.Module) -> None:
        self.layer = layer

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.layer(x)

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> Any:
        return self.layer.load_state_dict(state_dict, strict)


def layers() -> dict[str, tuple[nn.Module, torch.nn.Module, tuple[int, ...]]]:
    return {
        "linear": (nn.Linear(6, 4), torch.nn.Linear(6, 4), (2, 3, 6)),
        "conv1d": (nn.Conv1D(4, 6, 3, padding=1), torch.nn.Conv1d(4, 6, 3, padding=1), (2, 4, 8)),
        "conv2d": (
            nn.Conv2D(4, 6, 3, stride=2, groups=2),
            torch.nn.Conv2d(4, 6, 3, stride=2, groups=2),
            (1, 4, 9, 9),
        ),
        "layer_norm": (nn.LayerNorm(6), torch.nn.LayerNorm(6), (2, 6)),
        "group_norm": (Wrapped(nn.GroupNorm(2, 6)), torch.nn.GroupNorm(2, 6), (2, 6, 5)),
        "gelu": (nn.GELU(), torch.nn.GELU(), (2, 6)),
        "silu": (nn.SiLU(), torch.nn.SiLU(), (2, 6)),
        "relu": (nn.ReLU(), torch.nn.ReLU(), (2, 6)),
    }


@pytest.mark.parametrize("name", layers())
def test_layers_compute_what_pytorch_does(name: str) -> None:
    torch.manual_seed(0)
    ours, theirs, shape = layers()[name]
    x = torch.randn(shape)
    torch.testing.assert_close(run(ours, x, params=theirs), theirs(x), rtol=1e-4, atol=1e-5)


def test_rows_of_a_table() -> None:
    theirs = torch.nn.Embedding(10, 4)
    x = torch.tensor([[1, 9, 0]], dtype=torch.int32)
    found = run(nn.Embedding(10, 4), x, params=theirs)
    torch.testing.assert_close(found, theirs(x))


class Count(nn.Module):
    """Keeps all rows that it was given."""

    def __init__(self) -> None:
        self.cache = nn.KVCache(4, [2], "float32")

    def forward(self, x: nn.Tensor, total: Any) -> nn.Tensor:
        self.cache.append(x)
        return nn.sum(self.cache.view(total), axis=0)


def test_states_outlive_calls() -> None:
    model = Count().jit({"forward": {"x": spec.Tensor((1, 2), "float32"), "total": int}})
    x = torch.tensor([[1.0, 2.0]])
    for count in (1, 2, 3):
        torch.testing.assert_close(model["forward"](x, count), count * x[0])


def test_open_dimensions_are_shared_by_name() -> None:
    class Scores(nn.Module):
        def forward(self, a: nn.Tensor, b: nn.Tensor) -> nn.Tensor:
            return nn.softmax(nn.matmul(a, nn.permute_dims(b)))

    open_matrix = spec.Tensor(("n", "d"), "float32")
    model = Scores().jit({"forward": {"a": open_matrix, "b": open_matrix}})
    for n, d in ((2, 3), (5, 4)):
        a, b = torch.randn(n, d), torch.randn(n, d)
        torch.testing.assert_close(model["forward"](a, b), torch.softmax(a @ b.T, -1))
    with pytest.raises(RuntimeError, match="axis 1 of the shape is 4, expected 3 as elsewhere"):
        model["forward"](torch.randn(2, 3), torch.randn(2, 4))


class Nested(nn.Module):
    def __init__(self) -> None:
        self.layers = nn.ModuleList([nn.Linear(4, 4, bias=False), nn.Linear(4, 2)])

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return self.layers(x)


def test_parameters_have_dotted_names() -> None:
    assert list(Nested().state_dict()) == ["layers.0.weight", "layers.1.weight", "layers.1.bias"]
    with pytest.raises(KeyError, match=r"Missing keys: \['layers.0.weight', 'layers.1.weight'"):
        Nested().load_state_dict({"layers.1.bias": np.zeros(2, "float32")})
    with pytest.raises(ValueError, match=r"the parameter's shape is \[2\], got \[3\]"):
        Nested().layers[1].bias.data = np.zeros(3, "float32")


@pytest.mark.parametrize(("mode", "count"), [("plain", 4), ("packed", 2), ("none", 1)])
def test_parameters_are_passed_as_specified(mode: str, count: int) -> None:
    config = {"param_mode": mode, "effect_mode": "none"}
    if mode == "none":

        class Plain(nn.Module):
            def forward(self, x: nn.Tensor) -> nn.Tensor:
                return nn.exp(x)

        module: nn.Module = Plain()
    else:
        module = Nested()
    mod, _ = module.export_tvm({"forward": {"x": spec.Tensor((1, 4), "float32"), "$": config}})
    assert len(mod["forward"].params) == count
    assert int(mod["forward"].attrs["num_input"]) == 1


def test_a_subroutine_is_a_function_of_its_own() -> None:
    class Shared(Nested):
        define_subroutine = True

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return self.layers(x)

    class Twice(nn.Module):
        def __init__(self) -> None:
            self.one, self.two = Shared(), Shared()

        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return self.one(x) + self.two(x)

    mod, _ = Twice().export_tvm({"forward": {"x": spec.Tensor((1, 4), "float32")}})
    assert {gvar.name_hint for gvar in mod.functions} == {"forward", "shared"}


def test_what_is_wrong_with_a_specification_is_told() -> None:
    with pytest.raises(ValueError, match=r"the method's arguments \['x'\] are not specified"):
        Nested().export_tvm({"forward": {}})
    with pytest.raises(ValueError, match=r"the method has the arguments \['x'\], got also \['y'\]"):
        Nested().export_tvm({"forward": {"x": int, "y": int}})
    with pytest.raises(RuntimeError, match="debug=True"):

        class Printing(nn.Module):
            def forward(self, x: nn.Tensor) -> nn.Tensor:
                nn.print_(x)
                return x

        Printing().export_tvm({"forward": {"x": spec.Tensor((1,), "float32")}})


def test_collectives_are_operators_of_the_model() -> None:
    class Model(nn.Module):
        def forward(self, x: nn.Tensor) -> nn.Tensor:
            return nn.op.ccl_broadcast_from_worker0(
                nn.op.ccl_allgather(nn.op.ccl_allreduce(x, "max", in_group=False), 4)
            )

    mod, _ = Model().export_tvm({"forward": {"x": spec.Tensor([2, 3], "float32")}})
    values = [b.value for b in mod["forward"].body.blocks[0].bindings]
    calls = [value for value in values if hasattr(value, "op")]
    assert [call.op.name for call in calls] == [
        "relax.ccl.allreduce", "relax.ccl.allgather", "relax.ccl.broadcast_from_worker0",
    ]  # fmt: skip
    assert calls[0].attrs.op_type == "max" and not calls[0].attrs.in_group
    assert [int(d) for d in calls[2].struct_info.shape.values] == [8, 3]
