"""Whether an ONNX model keeps to its own rules: names, opsets, inputs and attributes of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm.error import OpAttributeInvalid, OpAttributeRequired, OpError, TVMError, suggest

Opsets = Mapping[str, int]


def check_model(model: Any, opset: Any = None) -> None:
    """Refuse a model that no reader could understand; ``opset`` is asked for instead of its own."""
    import onnx

    if not model.graph.output:
        raise TVMError("from_onnx requires a model with outputs, got one without")
    newest = onnx.defs.onnx_opset_version()
    opsets = {entry.domain: entry.version for entry in model.opset_import}
    if opset is not None and not isinstance(opset, int):
        raise TypeError(f"from_onnx requires an integer as opset, got {opset!r}")
    asked = opsets.get("", opsets.get("ai.onnx", 1)) if opset is None else opset
    if not 1 <= asked <= newest:
        raise TVMError(
            f"from_onnx requires an opset from 1 to {newest}, got {asked}",
            hint="a newer onnx package may know it: pip install -U onnx",
        )
    if opset is not None:
        opsets[""] = opset
    local = {(f.domain, f.name) for f in model.functions}
    _check_names(model.graph)
    schemas = _Schemas(opsets, local)
    for node in all_nodes(model.graph):
        schemas.check(node)
    for function in model.functions:
        own = {entry.domain: entry.version for entry in function.opset_import}
        schemas = _Schemas({**opsets, **own}, local)
        for node in all_nodes(function):
            schemas.check(node)


def all_nodes(graph: Any) -> Iterator[Any]:
    """Nodes of a graph and of the graphs in their attributes."""
    for node in graph.node:
        yield node
        for attr in node.attribute:
            for inner in [attr.g, *attr.graphs] if attr.HasField("g") else attr.graphs:
                yield from all_nodes(inner)


def _check_names(graph: Any) -> None:
    counts = Counter(name for node in graph.node for name in node.output if name)
    weights = {tensor.name for tensor in graph.initializer}
    counts.update(value.name for value in graph.input if value.name not in weights)
    counts.update(weights)
    for name, count in counts.items():
        if count > 1:
            raise TVMError(
                f"the ONNX graph has {count} values of the name {name!r}, one is allowed"
            )


@dataclass
class _Schemas:
    """ONNX's definitions of operators in the versions that a graph imports."""

    _opsets: Opsets
    _local: set[tuple[str, str]]
    _found: dict[tuple[str, str], tuple[Any, dict[str, Any]] | None] = field(default_factory=dict)

    def check(self, node: Any) -> None:
        """The numbers of inputs and outputs, and the attributes."""
        key = node.domain, node.op_type
        if key in self._local:
            return
        if key not in self._found:
            self._found[key] = self._schema(node)
        found = self._found[key]
        if found is None:
            return
        schema, attributes = found
        _check_count(node, "inputs", len(node.input), schema.min_input, schema.max_input)
        _check_count(node, "outputs", len(node.output), 0, schema.max_output)
        given = {attr.name for attr in node.attribute}
        for name, known in attributes.items():
            if known.required and name not in given:
                raise _of_node(OpAttributeRequired, node, f"requires the attribute {name!r}")
        for attr in node.attribute:
            _check_attribute(node, attr, attributes)

    def _schema(self, node: Any) -> tuple[Any, dict[str, Any]] | None:
        import onnx

        domain = "" if node.domain == "ai.onnx" else node.domain
        version = self._opsets.get(domain, self._opsets.get("ai.onnx", 1) if not domain else 1)
        try:
            schema = onnx.defs.get_schema(node.op_type, version, domain)
        except onnx.defs.SchemaError:
            return None
        return None if schema.deprecated else (schema, dict(schema.attributes))


def _check_count(node: Any, what: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise _of_node(OpAttributeInvalid, node, f"requires {wanted} {what}, got {count}")


def _check_attribute(node: Any, attr: Any, known: Mapping[str, Any]) -> None:
    if attr.name not in known:
        text = f"has no attribute {attr.name!r}"
        raise _of_node(OpAttributeInvalid, node, text, hint=suggest(str(attr.name), known))
    wanted = known[attr.name].type
    is_number = attr.type == attr.INT and wanted.value == attr.FLOAT  # which exporters write
    if attr.type and attr.type != wanted.value and not is_number:
        kinds = type(attr).AttributeType.Name(attr.type), wanted.name
        text = f"requires the attribute {attr.name!r} to be {kinds[1]}, got {kinds[0]}"
        raise _of_node(OpAttributeInvalid, node, text)


def _of_node(kind: type[OpError], node: Any, text: str, hint: str = "") -> OpError:
    name = node.name or next((name for name in node.output if name), "")
    return kind(f"{node.op_type} {name} {text}", hint=hint)
