"""Converters of ONNX operators: one function each, from a node's inputs to expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.error import OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.frontend.common import infer_dtype, infer_shape, infer_value


@dataclass
class OnnxNode:
    """One node with its inputs as expressions; absent optional inputs are None."""

    op_type: str
    name: str
    inputs: list[RelayExpr | None]
    attrs: dict[str, Any]
    opset: int
    output_count: int
    values: dict[str, Any]  # of named parameters
    import_graph: Callable[..., list[RelayExpr]]  # a subgraph attribute, with more names bound

    def __getitem__(self, index: int) -> RelayExpr:
        found = self.inputs[index] if index < len(self.inputs) else None
        if found is None:
            raise ValueError(f"{self.op_type} {self.name} requires an input {index}")
        return found

    def has(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def given(self) -> list[RelayExpr]:
        """The inputs that are there."""
        return [expr for expr in self.inputs if expr is not None]

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or ``default``."""
        return self.attrs.get(name, default)

    def shape(self, index: int = 0) -> tuple[Any, ...]:
        """The shape of an input."""
        return infer_shape(self[index])

    def dtype(self, index: int = 0) -> str:
        """The element type of an input."""
        return infer_dtype(self[index])

    def value(self, index: int) -> Any:
        """The numpy value of an input, None if absent or not constant."""
        return infer_value(self[index], self.values) if self.has(index) else None

    def require_value(self, index: int, what: str) -> np.ndarray[Any, Any]:
        """The numpy value of an input that has to be constant."""
        value = self.value(index)
        if value is None:
            raise OpAttributeUnImplemented(
                f"{self.op_type} {self.name} requires a constant for {what}, "
                "got a value known only at run time",
                hint="give the shapes of the inputs with from_onnx(model, shape={...})",
            )
        return np.asarray(value)

    def ints(self, name: str, index: int, default: Any = None) -> list[int] | Any:
        """Integers that older opsets have as attribute and newer ones as input."""
        if self.has(index):
            return [int(v) for v in self.require_value(index, name).reshape(-1)]
        found = self.attr(name)
        return default if found is None else [int(v) for v in np.asarray(found).reshape(-1)]

    def unsupported(self, what: str) -> OpAttributeUnImplemented:
        """The error for an attribute value that the converter does not know."""
        return OpAttributeUnImplemented(f"{self.op_type} {self.name} does not support {what}")


Converter = Callable[[OnnxNode], "RelayExpr | Sequence[RelayExpr] | Any"]

CONVERTERS: dict[str, Converter] = {}


def onnx_op(*names: str) -> Callable[[Converter], Converter]:
    """Register a converter for operators; those of other domains as ``domain.Name``."""

    def register(convert: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = convert
        return convert

    return register
