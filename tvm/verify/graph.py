"""ONNX models taken apart: their tensors, and parts of them as models of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tvm.error import TVMError, suggest
from tvm.relay.frontend.onnx.tensors import numpy_type

# what they give differs from run to run
_RANDOM = {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial",
           "Bernoulli"}  # fmt: skip
_TOKENS = 100  # random integers stay below the sizes of tables of words


def load(model: Any) -> onnx.ModelProto:
    """A model, with all its weights."""
    if isinstance(model, onnx.ModelProto):
        return model
    try:
        return onnx.load(str(model))
    except OSError:
        raise
    except Exception as error:
        raise TVMError(f"verify requires an ONNX file, {model} is none: {error}") from None


@dataclass
class ModelGraph:
    """The nodes of a model, and which tensors they need.

    Attributes
    ----------
    producer : dict of str to int
        The node that computes a tensor.
    reads : list of list of str
        The tensors each node needs, those of its subgraphs included.
    """

    model: onnx.ModelProto
    producer: dict[str, int] = field(default_factory=dict)
    reads: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, node in enumerate(self.nodes):
            self.reads.append(_names_read(node))
            self.producer.update({name: number for name in node.output if name})
        self.weights = {tensor.name: tensor for tensor in self.model.graph.initializer}
        self.sparse = {tensor.values.name for tensor in self.model.graph.sparse_initializer}

    @property
    def nodes(self) -> Sequence[onnx.NodeProto]:
        """The nodes in order."""
        found: Sequence[onnx.NodeProto] = self.model.graph.node
        return found

    @property
    def inputs(self) -> list[onnx.ValueInfoProto]:
        """The inputs that are no weights."""
        return [value for value in self.model.graph.input if value.name not in self.weights]

    @property
    def outputs(self) -> list[str]:
        """The names of the outputs."""
        return [value.name for value in self.model.graph.output]

    @property
    def tensors(self) -> list[str]:
        """All that nodes compute, in order, without constants."""
        found = [
            name
            for node in self.nodes
            if node.op_type != "Constant"
            for name in node.output
            if name
        ]
        return [*found, *(name for name in self.outputs if name not in self.producer)]

    @property
    def is_quantised(self) -> bool:
        """Whether a node works on quantised values."""
        kinds = {node.op_type for node in self.nodes}
        return any("Quant" in k or k.startswith("QLinear") or k.endswith("Integer") for k in kinds)

    def random_tensors(self) -> set[str]:
        """The tensors that differ from run to run."""
        found: set[str] = set()
        for node, reads in zip(self.nodes, self.reads, strict=True):
            if node.op_type in _RANDOM or found.intersection(reads):
                found.update(node.output)
        return found

    def ancestors(self, tensor: str) -> list[int]:
        """The nodes that a tensor depends on, nearest first."""
        found: dict[int, None] = {}
        level = [tensor]
        while level:
            numbers = [self.producer[name] for name in level if name in self.producer]
            level = []
            for number in dict.fromkeys(numbers):
                if number not in found:
                    found[number] = None
                    level += self.reads[number]
        return list(found)

    def exposing(self, names: Iterable[str]) -> onnx.ModelProto:
        """The same model, with other outputs."""
        made = onnx.ModelProto()
        made.CopyFrom(self.model)
        declared = {v.name: v for v in (*self.model.graph.output, *self.model.graph.input)}
        del made.graph.output[:]
        made.graph.output.extend(
            [declared.get(name, onnx.ValueInfoProto(name=name)) for name in names]
        )
        return made

    def part(
        self, numbers: Iterable[int], output: str, values: Mapping[str, Any]
    ) -> onnx.ModelProto | None:
        """Some nodes as a model; what others compute are its inputs, like ``values``.

        None if it would have an input that is no tensor.
        """
        chosen = set(numbers)
        while more := self._constants_of(chosen) - chosen:
            chosen |= more
        order = sorted(chosen)
        made = {name for number in order for name in self.nodes[number].output}
        needed = dict.fromkeys(n for number in order for n in self.reads[number] if n not in made)
        boundary = [
            name for name in needed if name not in self.weights | dict.fromkeys(self.sparse)
        ]
        if not all(isinstance(values.get(name), np.ndarray) for name in boundary):
            return None
        graph = helper.make_graph(
            [self.nodes[number] for number in order],
            "reproducer",
            [_typed(name, values[name]) for name in boundary],
            [_typed(output, values[output])],
            [self.weights[name] for name in needed if name in self.weights],
        )
        graph.sparse_initializer.extend(
            [t for t in self.model.graph.sparse_initializer if t.values.name in needed]
        )
        return helper.make_model(
            graph,
            opset_imports=list(self.model.opset_import),
            functions=list(self.model.functions),
            ir_version=self.model.ir_version,
        )

    def _constants_of(self, numbers: set[int]) -> set[int]:
        """The Constant nodes that nodes read."""
        producers = {
            self.producer[name] for n in numbers for name in self.reads[n] if name in self.producer
        }
        return {n for n in producers if self.nodes[n].op_type == "Constant"}


def _names_read(node: onnx.NodeProto) -> list[str]:
    """The tensors that a node needs, those that its subgraphs take from outside included."""
    names = dict.fromkeys(name for name in node.input if name)
    for attribute in node.attribute:
        for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
            own = {value.name for value in (*graph.input, *graph.initializer)}
            for inner in graph.node:
                names.update(dict.fromkeys(n for n in _names_read(inner) if n not in own))
                own.update(inner.output)
            names.update(dict.fromkeys(v.name for v in graph.output if v.name not in own))
    return list(names)


def _typed(name: str, value: np.ndarray[Any, Any]) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(value.dtype)
    return helper.make_tensor_value_info(name, kind, value.shape)


def make_inputs(
    graph: ModelGraph,
    given: Mapping[str, Any],
    shapes: Mapping[str, Sequence[int]],
    seed: int,
) -> dict[str, np.ndarray[Any, Any]]:
    """A value for each input: the given one, or a random one.

    Dimensions that neither the model nor ``shapes`` knows are 1.
    """
    names = [value.name for value in graph.inputs]
    for name in (*given, *shapes):
        if name not in names:
            raise TVMError(
                f"verify requires names of inputs, the model has {names}, got {name!r}",
                hint=suggest(name, names),
            )
    random = np.random.default_rng(seed)
    return {
        value.name: _checked(
            value,
            np.asarray(given[value.name])
            if value.name in given
            else _random_input(value, shapes.get(value.name), random),
        )
        for value in graph.inputs
    }


def _checked(value: onnx.ValueInfoProto, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    tensor = value.type.tensor_type
    dims = [_known_size(dim) for dim in tensor.shape.dim]
    wanted = _element_type(value)
    if wanted.kind == "V" and array.dtype == f"u{wanted.itemsize}":
        array = array.view(wanted)  # as numpy's files hold what numpy does not know
    fits = len(dims) == array.ndim and all(
        d is None or d == size for d, size in zip(dims, array.shape, strict=True)
    )
    if (tensor.HasField("shape") and not fits) or array.dtype != wanted:
        raise TVMError(
            f"verify requires {wanted}{['?' if d is None else d for d in dims]} for the input "
            f"{value.name!r}, got {array.dtype}{list(array.shape)}"
        )
    return array


def _element_type(value: onnx.ValueInfoProto) -> np.dtype[Any]:
    if value.type.WhichOneof("value") != "tensor_type":
        raise TVMError(
            f"verify requires tensors as inputs, {value.name!r} is a "
            f"{(value.type.WhichOneof('value') or 'value without type').removesuffix('_type')}"
        )
    return numpy_type(value.type.tensor_type.elem_type)


def _known_size(dim: onnx.TensorShapeProto.Dimension) -> int | None:
    # some exporters write -1 for what is open
    return int(dim.dim_value) if dim.HasField("dim_value") and dim.dim_value >= 0 else None


def _random_input(
    value: onnx.ValueInfoProto, shape: Sequence[int] | None, random: np.random.Generator
) -> np.ndarray[Any, Any]:
    dtype = _element_type(value)
    dims = value.type.tensor_type.shape.dim
    known = [_known_size(dim) for dim in dims]
    size = tuple(shape) if shape is not None else tuple([1 if d is None else d for d in known])
    if open_dims := [dim for dim in size if not isinstance(dim, (int, np.integer)) or dim < 0]:
        raise TVMError(
            f"verify requires sizes for the random input {value.name!r}, got {open_dims[0]} in its "
            "shape"
        )
    if dtype.kind in "iub":
        end = 2 if dtype.kind == "b" or "mask" in value.name.lower() else _TOKENS
        return random.integers(0, end, size).astype(dtype)
    if dtype.kind not in "fV":
        raise TVMError(f"verify requires a value for the input {value.name!r} of type {dtype}")
    return random.normal(size=size).astype(dtype)
