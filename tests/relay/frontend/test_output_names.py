"""Imported functions say what the model calls its outputs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from onnx import helper

from tests.verify.models import model_of
from tvm import relay

X = np.ones((2, 3), "float32")


def names_of(mod: object) -> list[str]:
    return list(mod["main"].attrs["output_tensor_names"])


def test_outputs_of_onnx_models() -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["e"]),
        helper.make_node("SequenceConstruct", ["e", "x"], ["both"]),
        helper.make_node("Identity", ["x"], ["same/0:1"]),
    ]
    model = model_of(nodes, {"x": X}, ["same/0:1", "both"])
    assert names_of(relay.frontend.from_onnx(model)[0]) == ["same/0:1", "both.0", "both.1"]


class Model(torch.nn.Module):
    def __init__(self, nest) -> None:
        super().__init__()
        self.nest = nest
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        return self.nest(x)


NESTED = {
    "a dictionary": (
        lambda x: {"logits": x.exp(), "past": [(x.abs(), x), None], "state": {"h": -x}},
        ["logits", "past.0.0", "past.0.1", "state.h"],
    ),
    "a tensor": (lambda x: x.exp(), ["exp"]),
    "a tuple": (lambda x: (x.exp(), x, None), ["exp", "x"]),
    "numbers": (lambda x: (x.exp(), 3), ["exp", "output1"]),
    "complex numbers": (lambda x: {"pairs": torch.complex(x, x)}, ["pairs"]),
}


@pytest.mark.parametrize("name", NESTED)
def test_outputs_of_exported_programs(name: str) -> None:
    nest, expected = NESTED[name]
    program = torch.export.export(Model(nest), (torch.ones(2, 3),))
    assert names_of(relay.frontend.from_exported_program(program)[0]) == expected


def test_written_buffers_are_called_as_in_the_state() -> None:
    class Counter(Model):
        def forward(self, x):
            self.count.add_(1)
            return {"sum": x + self.count}

    program = torch.export.export(Counter(None), (torch.ones(2, 3),))
    assert names_of(relay.frontend.from_exported_program(program)[0]) == ["count", "sum"]


def test_outputs_of_traced_dictionaries() -> None:
    traced = torch.jit.trace(
        Model(lambda x: {"logits": x.exp(), "more": x}).eval(), torch.ones(2, 3), strict=False
    )
    mod, _ = relay.frontend.from_pytorch(traced, [("x", (2, 3))])
    assert names_of(mod) == ["logits", "more"]
