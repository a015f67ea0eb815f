"""Kernels and compiled models as modules of PyTorch.

as_torch(kernel)(x, y)                                           # a PrimFunc on tensors, in place
optimize_torch(model, (x,))(x)                                   # a model, compiled
compile(torch.jit.script(model), {"input_infos": [("x", (1, 3, 224, 224))], "target": "llvm"})
"""

from .as_torch import OperatorModuleWrapper, as_torch
from .compiled import CompiledModule, compile, optimize_torch

__all__ = ["CompiledModule", "OperatorModuleWrapper", "as_torch", "compile", "optimize_torch"]
