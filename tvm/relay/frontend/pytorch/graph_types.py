"""What a TorchScript graph says about the types of values; the graph as text."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tvm.support.files import write_text

SCALAR_TYPES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16",
    "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8",
    "Bool": "bool", "ComplexFloat": "complex64", "ComplexDouble": "complex128",
}  # fmt: skip
PARTS_OF_COMPLEX = {"complex64": "float32", "complex128": "float64"}


def traced_shape(value: Any) -> tuple[int, ...] | None:
    """The shape that a trace saw, None if it is not known."""
    kind = value.type()
    sizes = kind.sizes() if kind.kind() == "TensorType" else None
    return None if sizes is None or None in sizes else tuple(sizes)


def type_text(value: Any) -> str:
    """``Float[1, 3]`` for a tensor of known shape, the type otherwise."""
    kind = value.type()
    if kind.kind() != "TensorType":
        return str(kind)
    sizes, scalar = kind.sizes(), kind.scalarType()
    return f"{scalar}{list(sizes)}" if sizes is not None else str(kind)


def write_graph(graph: Any, names: Mapping[str, str], folder: str) -> None:
    """Write a graph into a new file of a folder, its values under other names.

    The folder is made if there is none.
    """
    renamed = graph.copy()
    # a copy numbers its values anew
    for node, copied in zip(graph.nodes(), renamed.nodes(), strict=True):
        outputs = list(copied.outputs())
        for index, (known, value) in enumerate(zip(node.outputs(), outputs, strict=True)):
            if (name := names.get(known.debugName())) is not None:
                value.setDebugName(name if len(outputs) == 1 else f"{name}_{index}")
    stamp = datetime.now().strftime("%d_%m_%Y_%H_%M_%S")
    path = Path(folder) / f"tvm_exported_c_graph_{stamp}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, f"PyTorch model `C graph`:\n{renamed}")
