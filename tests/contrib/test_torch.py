"""Kernels and models as modules of PyTorch."""

from pathlib import Path

import pytest
import torch

import tvm
from tvm.contrib.torch import as_torch, compile, optimize_torch
from tvm.error import TVMError
from tvm.script import tir as T


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.layer(x))
        return y, y.sum(1)


@as_torch
@T.prim_func
def double(A: T.Buffer(8, "float32"), B: T.Buffer(8, "float32")):
    for i in range(8):
        B[i] = A[i] * T.float32(2)


def test_kernels_store_into_tensors() -> None:
    x, y = torch.arange(8.0), torch.zeros(8)
    assert isinstance(double, torch.nn.Module)
    double(x, y)
    assert torch.equal(y, 2 * x)


def test_functions_make_kernels_of_their_parameters() -> None:
    @as_torch
    def plus(n: int, c: float) -> tvm.tir.PrimFunc:
        a = tvm.te.placeholder((n,), name="a")
        return tvm.te.create_prim_func([a, tvm.te.compute((n,), lambda i: a[i] + c)])

    x, y = torch.ones(3), torch.zeros(3)
    module = plus(3, 1.5)
    module.build("llvm")
    module(x, y)
    assert y.tolist() == [2.5] * 3
    with pytest.raises(TVMError, match="requires a PrimFunc or an IRModule, got int"):
        as_torch(3)


def test_models_are_compiled_as_they_are_traced() -> None:
    model, x = Model(), torch.randn(2, 8)
    optimized = optimize_torch(model, (x,))
    for value in (x, torch.randn(2, 8)):
        for found, expected in zip(optimized(value), model(value), strict=True):
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    first, again = optimized(x)[0], optimized(torch.zeros(2, 8))[0]
    assert not torch.equal(first, again)  # results of a call stay as they are
    torch.testing.assert_close(optimize_torch(lambda a, b: a * b + 1, (x, x))(x, x), x * x + 1)


def test_scripts_are_compiled_with_options(tmp_path: Path) -> None:
    model, x = Model(), torch.randn(2, 8)
    option = {"input_infos": [("x", (2, 8))], "num_outputs": 2, "target": "llvm",
              "export_dir": str(tmp_path)}  # fmt: skip
    compiled = compile(torch.jit.script(model), option)
    torch.testing.assert_close(compiled(x)[1], model(x)[1], rtol=1e-5, atol=1e-5)
    assert (tmp_path / "mod.so").exists()
    with pytest.raises(TVMError, match="num_outputs of compile is 1, but the model has 2"):
        compile(torch.jit.script(model), {"input_infos": [("x", (2, 8))]})
    with pytest.raises(TVMError, match="got 'input_info'"):
        compile(torch.jit.script(model), {"input_info": []})
    with pytest.raises(TVMError, match="requires the option input_infos"):
        compile(torch.jit.script(model), {})


def test_kernels_are_measured_if_that_is_wanted(tmp_path: Path) -> None:
    x = torch.randn(2, 8)
    model = torch.nn.Linear(8, 4)
    optimized = optimize_torch(model, x, max_trials_global=2, work_dir=str(tmp_path))
    torch.testing.assert_close(optimized(x), model(x), rtol=1e-5, atol=1e-5)
    assert (tmp_path / "records.json").read_text().count("\n") >= 1
