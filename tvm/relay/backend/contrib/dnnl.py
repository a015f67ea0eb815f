"""The compiler `dnnl`: functions as graphs that oneDNN runs.

A composite function becomes one node with the attributes of its first operator and

    root       "nn.conv2d"
    post_ops   ["bias:2", "sum:3", "nn.relu"]     what is done before the result is stored; the
                                                  numbers are those of the node's inputs
    scales, source_zero                           of products of integers: the factors of their
                                                  sums, and the zero point of the data
"""

from __future__ import annotations

from tvm._ffi import get_global_func, register_func
from tvm._ffi.libinfo import find_lib_path
from tvm.ir.op import Op
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.contrib.codegen_json import JSONGraphNode, JSONGraphNodeEntry, JSONSerializer
from tvm.relay.contrib.dnnl_quantized import PRODUCTS, quantized_product
from tvm.relay.expr import Call, Constant
from tvm.relay.function import Function
from tvm.relay.traverse import post_order
from tvm.runtime import ndarray
from tvm.runtime.module import Module
from tvm.runtime.ndarray import NDArray

# by the parts of composite functions' names; the others have parameters
ACTIVATIONS = {
    "abs": "abs",
    "exp": "exp",
    "gelu": "gelu",
    "log": "log",
    "mish": "mish",
    "relu": "nn.relu",
    "round": "round",
    "sigmoid": "sigmoid",
    "sqrt": "sqrt",
    "swish": "swish",
    "tanh": "tanh",
}


def compile_function(func: Function) -> Module:
    """The runtime module of a function."""
    serializer = DNNLSerializer.of(func)
    create = get_global_func("runtime.DNNLJSONRuntimeCreate")
    module: Module = create(serializer.symbol, serializer.get_json(), serializer.const_names)
    return module


def constants(func: Function, symbol: str) -> dict[str, NDArray]:
    """The constants of a function by name."""
    return DNNLSerializer.of(func).constants


class DNNLSerializer(JSONSerializer):
    """Writes the graph of one function."""

    def __init__(self, symbol: str, func: Function) -> None:
        super().__init__(symbol, func)
        self._biases: list[Constant] = []  # kept, since entries are found by identity

    @staticmethod
    def of(func: Function) -> DNNLSerializer:
        """The serializer that has visited a function."""
        serializer = DNNLSerializer(str(func.attrs["global_symbol"]), func)
        serializer.serialize()
        return serializer

    def visit_call(self, call: Call, inputs: list[JSONGraphNodeEntry]) -> list[JSONGraphNodeEntry]:
        if not isinstance(call.op, Op):
            return self._composite(call, inputs)
        node = JSONGraphNode(call.op.name, "kernel", inputs)
        self.set_attrs(node, call.attrs)
        node.set_attr("root", _activation(call) or call.op.name)
        return self._finished(node, call)

    def _composite(self, call: Call, inputs: list[JSONGraphNodeEntry]) -> list[JSONGraphNodeEntry]:
        assert isinstance(call.op, Function)
        entries = {id(p): e for p, e in zip(call.op.params, inputs, strict=True)}
        inside = post_order(call.op.body)
        chain = [inner for inner in inside if isinstance(inner, Call)]
        root = chain[0]
        name = self.kernel_name(call)
        if _operator_name(root) in PRODUCTS:
            return self._quantized(call, name, entries)
        for inner in inside:
            if isinstance(inner, Constant):
                entries[id(inner)] = self.add_constant(inner)[0]
        node = JSONGraphNode(name, "kernel", [entries[id(a)] for a in root.args])
        self.set_attrs(node, root.attrs)
        node.set_attr("root", _operator_name(root))
        node.set_attr("post_ops", self._post_ops(node, name, chain, entries))
        return self._finished(node, call)

    def _quantized(
        self, call: Call, name: str, entries: dict[int, JSONGraphNodeEntry]
    ) -> list[JSONGraphNodeEntry]:
        """A product of integers; its sums are scaled before the other steps."""
        assert isinstance(call.op, Function)
        product = quantized_product(call.op.body, name.removeprefix("dnnl."))
        assert product is not None, "the pattern table has checked the function"
        root = product.root
        operands = [a for a in (*root.args[:2], product.summand) if a is not None]
        for operand in operands:
            if isinstance(operand, Constant):
                entries[id(operand)] = self.add_constant(operand)[0]
        node = JSONGraphNode(name, "kernel", [entries[id(a)] for a in root.args[:2]])
        self.set_attrs(node, root.attrs)
        node.set_attr("root", _operator_name(root))
        node.set_attr("scales", [repr(float(scale)) for scale in product.scales])
        node.set_attr("source_zero", product.source_zero)
        steps: list[str] = []
        if product.bias is not None:
            steps.append(f"bias:{len(node.inputs)}")
            bias = Constant(ndarray.array(product.bias))
            infer_type_of(bias)
            self._biases.append(bias)
            node.inputs += self.add_constant(bias)
        for step in product.steps:
            if step.startswith("sum:"):
                assert product.summand is not None
                steps.append(f"sum:{len(node.inputs)}:{step.removeprefix('sum:')}")
                node.inputs.append(entries[id(product.summand)])
            else:
                steps.append(step)
        node.set_attr("post_ops", steps)
        return self._finished(node, call)

    def _post_ops(
        self,
        node: JSONGraphNode,
        name: str,
        chain: list[Call],
        entries: dict[int, JSONGraphNodeEntry],
    ) -> list[str]:
        texts: list[str] = []
        kind = name.removeprefix("dnnl.").removeprefix(_operator_name(chain[0]).removeprefix("nn."))
        value = chain[0]
        for part, call in zip(kind.split("_")[1:], chain[1:], strict=False):
            if part in ("bias", "sum"):
                other = next(a for a in call.args if a is not value)
                texts.append(f"{part}:{len(node.inputs)}")
                node.inputs.append(entries[id(other)])
            else:
                texts.append(_activation(call) or ACTIVATIONS[part])
            value = call
        return texts

    def _finished(self, node: JSONGraphNode, call: Call) -> list[JSONGraphNodeEntry]:
        if not self.func.attrs.get("alter_layout", 1):
            node.set_attr("plain_layouts", 1)
        return self.add_node(node, call)


def _operator_name(call: Call) -> str:
    assert isinstance(call.op, Op)
    return call.op.name


def _activation(call: Call) -> str | None:
    """An activation with its parameters, such as `clip:0.0:6.0`; None if the operator has none."""
    name = _operator_name(call)
    if name == "clip":
        return f"clip:{float(call.attrs.a_min)!r}:{float(call.attrs.a_max)!r}"
    if name == "nn.leaky_relu":
        return f"nn.leaky_relu:{float(call.attrs.alpha)!r}"
    return None


if find_lib_path("libtvm_dnnl.so", optional=True):  # programs ask for the function to learn that
    register_func("relay.ext.dnnl", compile_function, override=True)
    register_func("relay.ext.dnnl.constant_updater", constants, override=True)
