"""Kernels as modules of PyTorch, which store into the tensors that they are called with.

@as_torch
@T.prim_func
def double(A: T.Buffer(8, "float32"), B: T.Buffer(8, "float32")): ...

double(x, y)        # y is 2*x then
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tvm.contrib.dlpack import to_pytorch_func
from tvm.driver.build_module import build
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.runtime.module import Module
from tvm.target import Target
from tvm.tir.function import PrimFunc


class OperatorModuleWrapper(torch.nn.Module):
    """A kernel on tensors of the processor.

    Parameters
    ----------
    module : PrimFunc or IRModule
        The kernel.
    """

    def __init__(self, module: PrimFunc | IRModule) -> None:
        super().__init__()
        self.ir_module = IRModule({"main": module}) if isinstance(module, PrimFunc) else module
        self.rt_module: Module | None = None
        self._call: Callable[..., Any] | None = None

    def build(self, target: str | Target | None = None) -> None:
        """Compile the kernel; the first call does so for this machine.

        Parameters
        ----------
        target : str or Target, optional
            What it is compiled for.
        """
        self.rt_module = build(self.ir_module, target=target or "llvm -mcpu=native")
        self._call = to_pytorch_func(self.rt_module)

    def forward(self, *torch_inputs: torch.Tensor) -> None:
        """Run the kernel, which stores into its outputs among the arguments."""
        if self._call is None:
            self.build()
        assert self._call is not None
        self._call(*torch_inputs)


def as_torch(func: PrimFunc | IRModule | Callable[..., Any]) -> Any:
    """A kernel as a module of PyTorch.

    Parameters
    ----------
    func : PrimFunc, IRModule, or function that makes one
        The kernel. Of a function, calls with its parameters give the module.
    """
    if isinstance(func, (PrimFunc, IRModule)):
        return OperatorModuleWrapper(func)
    if not callable(func):
        raise TVMError(f"as_torch requires a PrimFunc or an IRModule, got {type(func).__name__}")

    def make(*args: Any, **kwargs: Any) -> OperatorModuleWrapper:
        return OperatorModuleWrapper(func(*args, **kwargs))

    return make
