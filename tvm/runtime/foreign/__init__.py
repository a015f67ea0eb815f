"""Nodes of a model that the framework it comes from computes while the compiled model runs.

What a node does is a tensor of bytes beside its other arguments, so that exported models hold it too.
"""

from __future__ import annotations

from tvm._ffi.registry import register_func

from .image_decoder import read_image_decoder
from .node import Foreign, ForeignNode, described
from .onnx_node import read_onnx_node
from .torch_call import read_torch_call

ONNX = Foreign("tvm.contrib.onnx.compute", read_onnx_node)
PILLOW = Foreign("tvm.contrib.pillow.decode", read_image_decoder)
TORCH = Foreign("tvm.contrib.torch.compute", read_torch_call)

for _framework in (ONNX, PILLOW, TORCH):
    register_func(_framework.function, _framework.compute, override=True)
    register_func(f"{_framework.function}.shapes", _framework.shapes, override=True)

__all__ = ["ONNX", "PILLOW", "TORCH", "Foreign", "ForeignNode", "described"]
