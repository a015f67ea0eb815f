"""Converters of ONNX operators: one function each, from a node's inputs to expressions.

A converter says by its signature what it takes. Parameters without a default are the inputs, in
order, None if they may be absent; parameters with a value by default, or behind a ``*``, are
attributes of these names, and ``node`` is the node:

    @onnx_op("Gemm")
    def gemm(a, b, c=None, alpha=1.0, beta=1.0, transA=False, transB=False): ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tvm.error import OpAttributeInvalid, OpAttributeUnImplemented
from tvm.ir.expr import RelayExpr
from tvm.relay.analysis import free_vars
from tvm.relay.expr import TupleWrapper
from tvm.relay.frontend.common import infer_dtype, infer_shape, infer_value, is_static
from tvm.relay.frontend.converters import Converters

from .shape_inference import Dims

Shape = tuple[Any, ...]


@dataclass(frozen=True)
class TensorSequence:
    """A sequence: how many tensors it has is known at import."""

    fields: tuple[Any, ...]


@dataclass(frozen=True)
class EmptyOptional:
    """An optional without a value."""


@dataclass(frozen=True)
class StringTensor:
    """A tensor of strings: indices into a table that is known at import."""

    table: tuple[str, ...]
    indices: RelayExpr

    def at(self, indices: Any) -> np.ndarray[Any, Any]:
        """The strings of indices in numpy."""
        chosen = np.array([self.table[index] for index in np.reshape(indices, -1)], object)
        return np.reshape(chosen, np.shape(indices))


# what a name of an ONNX graph stands for
Value = RelayExpr | TensorSequence | EmptyOptional | StringTensor


class ValueRequired(OpAttributeUnImplemented):
    """A converter needs a value at import; ``inputs`` are those of the graph that it depends on."""

    def __init__(self, message: str, value: RelayExpr) -> None:
        super().__init__(
            message, hint="give the shapes of the inputs with from_onnx(model, shape={...})"
        )
        self.inputs = [v.name_hint for v in free_vars(value)]


@dataclass
class OnnxNode:
    """One node with its inputs as expressions; absent optional inputs are None."""

    op_type: str
    name: str
    inputs: list[Any]  # a Value each
    attrs: dict[str, Any]
    opset: int
    output_count: int
    values: dict[str, Any]  # of named parameters
    # the outputs of a subgraph attribute, with more names bound
    import_graph: Callable[[Any, Mapping[str, Any]], list[Any]]
    domain: str = ""
    allow_dynamic: bool = False  # shapes may depend on run-time values
    input_dims: Sequence[Dims | None] = ()  # as far as ONNX's shape inference knows
    output_dims: Sequence[Dims | None] = ()
    config: Mapping[str, Any] = field(default_factory=dict)  # options of converters
    input_types: Sequence[int | None] = ()  # ONNX's numbers of those that are held wider

    def __getitem__(self, index: int) -> RelayExpr:
        found = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(found, RelayExpr):
            kind = "nothing" if found is None else type(found).__name__.lower()
            raise OpAttributeInvalid(
                f"{self.op_type} {self.name} requires a tensor as input {index}, got {kind}"
            )
        return found

    def sequence(self, index: int) -> tuple[RelayExpr, ...]:
        """The tensors of an input that is a sequence."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(found, TensorSequence):
            raise OpAttributeInvalid(
                f"{self.op_type} {self.name} requires a sequence as input {index}"
            )
        return found.fields

    def strings(self, index: int) -> StringTensor | None:
        """An input that consists of strings, None if it consists of numbers."""
        found = self.inputs[index] if index < len(self.inputs) else None
        return found if isinstance(found, StringTensor) else None

    def has(self, index: int) -> bool:
        """Whether an optional input is given."""
        return index < len(self.inputs) and self.inputs[index] is not None

    def given(self) -> list[RelayExpr]:
        """The inputs that are there."""
        return [expr for expr in self.inputs if expr is not None]

    def attr(self, name: str, default: Any = None) -> Any:
        """The value of an attribute, or ``default``."""
        return self.attrs.get(name, default)

    def required_attr(self, name: str) -> Any:
        """The value of an attribute, which has to be there."""
        if name not in self.attrs:
            raise OpAttributeInvalid(f"{self.op_type} {self.name} requires the attribute {name!r}")
        return self.attrs[name]

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
            raise ValueRequired(
                f"{self.op_type} {self.name} requires a constant for {what}, "
                "got a value known only at run time",
                self[index],
            )
        return np.asarray(value)

    def value_or_expr(self, index: int, what: str) -> np.ndarray[Any, Any] | RelayExpr:
        """The numpy value of an input, or the input itself where run-time values are allowed."""
        if self.allow_dynamic and self.value(index) is None:
            return self[index]
        return self.require_value(index, what)

    def require_scalar(self, index: int, what: str) -> Any:
        """The Python number of an input that has to be constant and to have one element."""
        return self.require_value(index, what).reshape(-1)[0].item()

    def static_shape(self, index: int = 0) -> tuple[int, ...]:
        """The shape of an input, all of it known."""
        shape = self.shape(index)
        if not is_static(shape):
            raise ValueRequired(
                f"{self.op_type} {self.name} requires the shape of input {index} at import, "
                f"got {shape}", self[index],
            )  # fmt: skip
        return shape

    def ints(self, name: str, index: int, default: Any = None) -> list[int] | Any:
        """Integers that older opsets have as attribute and newer ones as input."""
        if self.has(index):
            return [int(v) for v in self.require_value(index, name).reshape(-1)]
        found = self.attr(name)
        return default if found is None else [int(v) for v in np.asarray(found).reshape(-1)]

    def unsupported(self, what: str) -> OpAttributeUnImplemented:
        """The error for an attribute value that the converter does not know."""
        return OpAttributeUnImplemented(f"{self.op_type} {self.name} does not support {what}")


# the outputs of a node: one, or several
Result = Value | Sequence[Value] | TupleWrapper
Converter = Callable[[OnnxNode], Result]


class BySignature:
    """The converter that a function is, which says by its signature what it takes of a node."""

    def __init__(self, function: Callable[..., Result]) -> None:
        self._function = function

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self._function).parameters.values())

    def __call__(self, node: OnnxNode) -> Result:
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        for parameter in self._parameters:
            name, default = parameter.name, parameter.default
            if name == "node":
                attributes[name] = node
            elif parameter.kind is parameter.VAR_POSITIONAL:
                inputs += node.given()[len(inputs) :]
            elif parameter.kind is parameter.KEYWORD_ONLY or default not in (None, parameter.empty):
                if name in node.attrs or default is parameter.empty:
                    found = node.required_attr(name)
                    attributes[name] = bool(found) if isinstance(default, bool) else found
            else:
                index = len(inputs)
                inputs.append(node[index] if node.has(index) or default is not None else None)
        return self._function(*inputs, **attributes)


# those of other domains as ``domain.Name``
CONVERTERS: Converters[Converter] = Converters(adapted=BySignature)
onnx_op, onnx_ops = CONVERTERS.op, CONVERTERS.rows


def key_of(node: Any) -> str:
    """The name of a node's operator, with the domain if it is not ONNX's own."""
    return node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def static_ints(values: Any) -> list[int]:
    """All elements as Python integers."""
    return [int(v) for v in np.asarray(values).reshape(-1)]
