"""Importers: from the formats of other frameworks to relay modules.

The frameworks themselves are imported at the first use of their importer.
"""

from typing import Any as _Any

from tvm.support.absent import absent_name as _absent_name

from . import common, pytorch_utils, qnn_torch
from .change_datatype import ChangeDatatype
from .onnx import from_onnx
from .pytorch import from_exported_program, from_pytorch

__all__ = [
    "ChangeDatatype", "common", "from_exported_program", "from_onnx", "from_pytorch", "pytorch_utils", "qnn_torch",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    return _absent_name("tvm.relay.frontend", name)
