"""The nodes and initializers of an ONNX graph while it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.support import UniqueNames


class GraphWriter:
    """Collects nodes; values are known by their names.

    Parameters
    ----------
    opset : int
        The version of the operators.
    """

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self._names = UniqueNames()

    def fresh(self, hint: str) -> str:
        """A name that no other value has."""
        return self._names.fresh(hint)

    def constant(self, value: Any, dtype: str | None = None) -> str:
        """An initializer."""
        from onnx import numpy_helper

        name = self.fresh("constant")
        self.initializers.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def node(self, kind: str, inputs: Sequence[str], count: int = 1, **attrs: Any) -> list[str]:
        """The results of a new node."""
        from onnx import helper

        names = [self.fresh(kind.lower()) for _ in range(count)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attrs))
        return names

    def one(self, kind: str, *inputs: str, **attrs: Any) -> str:
        """The result of a new node that has one."""
        return self.node(kind, inputs, **attrs)[0]

    def identity(self, value: str, hint: str) -> str:
        """The value under another name."""
        from onnx import helper

        name = self.fresh(hint)
        self.nodes.append(helper.make_node("Identity", [value], [name]))
        return name

    def reshaped(self, value: str, shape: Sequence[int]) -> str:
        """The value in another shape."""
        return self.one("Reshape", value, self.constant(list(shape), "int64"))

    def transposed(self, value: str, order: Sequence[int]) -> str:
        """The value with its axes in another order."""
        if list(order) == list(range(len(order))):
            return value
        return self.one("Transpose", value, perm=list(order))

    def relaid(self, value: str, source: str, target: str) -> str:
        """The value in another layout of the same axes."""
        return self.transposed(value, [source.index(axis) for axis in target])

    def element_type(self, dtype: Any) -> int:
        """ONNX's number of an element type."""
        from onnx import helper

        return int(helper.np_dtype_to_tensor_dtype(np.dtype(str(dtype))))

    def reduced(self, kind: str, value: str, axes: Sequence[int], keepdims: bool) -> str:
        """A reduction; its axes are an input since version 18, those of sums since 13."""
        since = 13 if kind == "ReduceSum" else 18
        if self.opset < since:
            return self.one(kind, value, axes=list(axes), keepdims=int(keepdims))
        return self.one(kind, value, self.constant(list(axes), "int64"), keepdims=int(keepdims))
