"""Compiled functions on PyTorch tensors."""

from __future__ import annotations

import torch

from tvm.contrib.dlpack import to_pytorch_func
from tvm.runtime import Module


def test_a_function_works_on_the_tensors_themselves(library: Module) -> None:
    x, y, out = torch.ones(3), torch.arange(3.0), torch.empty(3)
    to_pytorch_func(library["add"])(x, y, out)
    assert torch.equal(out, x + y)
