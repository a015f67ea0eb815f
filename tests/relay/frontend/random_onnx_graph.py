"""A growing random ONNX graph.

A value is *exact* if it was computed without rounding, from inputs that are multiples of
1/8: only such values reach operators that jump (`Floor`, `ArgMax`, comparisons, casts to integers),
so that another rounding elsewhere never counts as a difference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOATS = ("float32", "float64", "float16")
INTEGERS = ("int32", "int64", "int8", "uint8")
DTYPES = (*FLOATS, *INTEGERS, "bool")
LARGEST = 4096  # elements of a value


@dataclass(frozen=True)
class Value:
    """A tensor of the graph."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    is_exact: bool = True

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_number(self) -> bool:
        return self.dtype != "bool"


@dataclass
class Graph:
    """What has been drawn so far."""

    rng: np.random.Generator
    opset: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    open_axes: set[tuple[str, int]] = field(default_factory=set)  # of inputs, unknown to the model

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def axis(self, value: Value) -> int:
        """An axis, counted from either end."""
        return self.integer(-value.rank, value.rank - 1)

    def array(self, shape: Sequence[int], dtype: str) -> np.ndarray:
        """Small multiples of 1/8, so that sums of a few stay exact."""
        if dtype == "bool":
            return np.asarray(self.rng.integers(0, 2, shape), bool)
        if dtype in FLOATS:
            return np.asarray(self.rng.integers(-24, 25, shape) / 8, dtype)
        low = 0 if dtype == "uint8" else -5
        return np.asarray(self.rng.integers(low, 6, shape), dtype)

    def pick(self, accepts: Callable[[Value], bool] = lambda v: True) -> Value | None:
        """A value, later ones rather; None if none fits."""
        found = [v for v in self.values if accepts(v)]
        if not found:
            return None
        return found[max(self.integer(0, len(found) - 1), self.integer(0, len(found) - 1))]

    def input(self, shape: Sequence[int], dtype: str) -> Value:
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.array(shape, dtype)
        value = Value(name, tuple(shape), dtype)
        self.values.append(value)
        return value

    def constant(self, array: np.ndarray) -> Value:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(array, order="C"), name))
        return Value(name, array.shape, str(array.dtype))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, "int64")).name

    def scalar(self, value: int) -> str:
        return self.constant(np.array(value, "int64")).name

    def add(self, op: str, inputs: Sequence[Value | str], like: Value, **attrs: Any) -> Value:
        """A node whose result has the shape, type and exactness of `like`."""
        names = [v if isinstance(v, str) else v.name for v in inputs]
        result = replace(like, name=f"v{len(self.nodes)}")
        self.nodes.append(helper.make_node(op, names, [result.name], **attrs))
        self.values.append(result)
        return result

    def raw(self, op: str, inputs: Sequence[Value | str], **attrs: Any) -> str:
        """A node whose result is no tensor, by name: later nodes do not find it."""
        names = [v if isinstance(v, str) else v.name for v in inputs]
        result = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [result], **attrs))
        return result

    def model(self) -> onnx.ModelProto:
        """The graph; results are the values that nobody reads, and a few others."""
        read = {name for node in self.nodes for name in names_read(node)}
        made = [v for v in self.values if v.name not in self.inputs]
        results = [v for v in made if v.name not in read or self.chance(0.1)]
        graph = helper.make_graph(
            self.nodes,
            "random",
            [
                _info(name, self._declared(name, array.shape), str(array.dtype))
                for name, array in self.inputs.items()
            ],
            [_info(v.name, v.shape, v.dtype) for v in results],
            self.constants,
        )
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    def _declared(self, name: str, shape: Sequence[int]) -> list[int | str]:
        """The shape as the model declares it: names for what it leaves open."""
        return [
            f"{name}_{axis}" if (name, axis) in self.open_axes else extent
            for axis, extent in enumerate(shape)
        ]


def _info(name: str, shape: Sequence[int | str], dtype: str) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, list(shape))


def names_read(node: onnx.NodeProto) -> list[str]:
    """What a node reads, what its regions read of the graph around included."""
    inner = [n for attr in node.attribute for n in attr.g.node]
    return [*node.input, *[name for n in inner for name in names_read(n)]]
