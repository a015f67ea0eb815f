"""Operators that PyTorch computes while the compiled model runs."""

from __future__ import annotations

import pytest
import torch

import tvm
from tvm import relay

from .running import assert_close, run

X = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))


def test_unsupported_operators_can_run_in_torch() -> None:
    def function(x):
        factor, pivots = torch.linalg.ldl_factor(x @ x.transpose(1, 2))
        return torch.special.airy_ai(x).sum() + factor, pivots

    script = torch.jit.trace(function, X)
    with pytest.warns(UserWarning, match="ldl_factor.* runs in PyTorch"):
        mod, params = relay.frontend.from_pytorch(script, [("x", (2, 3, 4))], fallback=True)
    for actual, expected in zip(run(mod, params, {"x": X.numpy()}), function(X), strict=True):
        assert_close(actual, expected.numpy())


def test_operators_in_torch_follow_other_shapes_than_the_trace() -> None:
    script = torch.jit.trace(lambda x: torch.special.airy_ai(x) * 2, torch.ones(2, 3))
    x = torch.linspace(-1, 1, 20).reshape(4, 5)
    for shape in ((4, 5), (relay.Any(), 5)):
        with pytest.warns(UserWarning, match="airy_ai"):
            mod, _ = relay.frontend.from_pytorch(script, [("x", shape)], fallback=True)
        result = relay.create_executor("vm", mod, tvm.cpu(), "llvm").evaluate()(x.numpy())
        assert_close(result.numpy(), (torch.special.airy_ai(x) * 2).numpy())
