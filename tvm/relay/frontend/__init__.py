"""Importers: from the formats of other frameworks to relay modules.

The frameworks themselves are imported at the first use of their importer.
"""

from . import common, pytorch_utils, qnn_torch
from .onnx import from_onnx
from .pytorch import from_exported_program, from_pytorch

__all__ = [
    "common", "from_exported_program", "from_onnx", "from_pytorch", "pytorch_utils", "qnn_torch",
]  # fmt: skip
