"""What users say about the inputs of traced and scripted modules, and the other options."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import tvm
from tvm import relay
from tvm.relay.prelude import Prelude
from tvm.runtime.container import ADT, tuple_object

from .running import assert_close

torch.manual_seed(0)
SHAPE = (2, 4)
X, H, C = [torch.randn(SHAPE) for _ in range(3)]


class Pair(nn.Module):
    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]):
        h, c = state
        return x + h, (h, c * 2)


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells = nn.ModuleList([nn.LSTMCell(4, 4), nn.LSTMCell(4, 4)])

    def forward(self, x: Tensor, states: list[tuple[Tensor, Tensor]]):
        for i, cell in enumerate(self.cells):
            x, c = cell(x, states[i])
        return x, c


class Numbers(nn.Module):
    def forward(self, x: Tensor, n: int, factor: float, flag: bool):
        if flag:
            x = x * factor
        for _ in range(n):
            x = x + 1
        return x, n + 1


def as_list(values: Any) -> Any:
    """Values as the prelude's list, nested ones too."""
    _, cons, nil = Prelude(tvm.IRModule()).mod.get_type("List")
    made = ADT(nil.tag, [])
    for value in reversed(values):
        made = ADT(cons.tag, [tuple_object([tvm.nd.array(v.numpy()) for v in value]), made])
    return made


def call(module: nn.Module, infos: list[Any], *args: Any) -> list[np.ndarray]:
    mod, params = relay.frontend.from_pytorch(torch.jit.script(module), infos)
    run = relay.create_executor("vm", mod=mod, target="llvm").evaluate()
    return _flat(run(*args, **params))


def _flat(value: Any) -> list[np.ndarray]:
    if hasattr(value, "numpy"):
        return [value.numpy()]
    return [array for item in value for array in _flat(item)]


def test_tuples_are_inputs() -> None:
    infos = [("x", SHAPE), ("state", (SHAPE, (SHAPE, "float32")))]
    found = call(Pair(), infos, X.numpy(), (H.numpy(), C.numpy()))
    for actual, expected in zip(found, [X + H, H, C * 2], strict=True):
        assert_close(actual, expected.numpy())


@torch.no_grad()
def test_lists_are_inputs() -> None:
    module, states = Layers(), [(H, C), (C, H)]
    infos = [("x", SHAPE), ("states", [(SHAPE, SHAPE), (SHAPE, SHAPE)])]
    found = call(module, infos, X.numpy(), as_list(states))
    for actual, expected in zip(found, module(X, states), strict=True):
        assert_close(actual, expected.numpy())


@torch.no_grad()
def test_a_list_has_as_many_items_as_the_model_reads() -> None:
    module, states = Layers(), [(H, C), (C, H)]
    found = call(module, [("x", SHAPE), ("states", [(SHAPE, SHAPE)])], X.numpy(), as_list(states))
    for actual, expected in zip(found, module(X, states), strict=True):
        assert_close(actual, expected.numpy())


def test_numbers_are_inputs_of_their_types() -> None:
    infos = [("x", SHAPE), ("n", ()), ("factor", ()), ("flag", ())]
    mod, _ = relay.frontend.from_pytorch(torch.jit.script(Numbers()), infos)
    assert [v.type_annotation.dtype for v in mod["main"].params[1:]] == ["int64", "float64", "bool"]
    found = call(Numbers(), infos, X.numpy(), np.int64(3), np.float64(1.5), np.array(True))
    assert_close(found[0], (X * 1.5 + 3).numpy())
    assert found[1] == 4


WRONG = {
    "a tuple of 2": [("x", SHAPE), ("state", (SHAPE,))],
    "requires a tuple": [("x", 4), ("state", (SHAPE, SHAPE))],
    "requires integers": [("x", ("a", "b")), ("state", (SHAPE, SHAPE))],
}


@pytest.mark.parametrize("message", WRONG)
def test_shapes_of_another_structure_are_refused(message: str) -> None:
    with pytest.raises(TypeError, match=message):
        relay.frontend.from_pytorch(torch.jit.script(Pair()), WRONG[message])


def test_converters_of_users_are_told_types() -> None:
    seen = []

    def convert(inputs: list[Any], types: list[str]) -> relay.Expr:
        seen.append(types)
        return relay.exp(inputs[0])

    script = torch.jit.trace(lambda x: x.clamp(0, 1).sum([0], True), X)
    relay.frontend.from_pytorch(
        script, [("x", SHAPE)], {"aten::clamp": convert, "aten::sum": convert}
    )
    assert seen == [
        ["float32", "int32", "int32"], ["float32", "ListType", "bool", "NoneType"]
    ]  # fmt: skip
