"""The compiler `dnnl`: functions as graphs that oneDNN runs.

A composite function becomes one node, of its first operator and what follows it: a bias, a summand,
activations, in this order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm._ffi import get_global_func, register_func
from tvm._ffi.libinfo import find_lib_path
from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.op import Op
from tvm.relax.expr import Call, Constant, Function, PrimValue, Var
from tvm.relay.backend.contrib.codegen_json import JSONGraphNode, JSONGraphNodeEntry
from tvm.runtime.module import Module

from .codegen_json import Entries, JSONSerializer

# the names that the runtime knows: of first operators
ROOTS = {
    "relax.nn.conv1d": "nn.conv1d",
    "relax.nn.conv2d": "nn.conv2d",
    "relax.nn.conv3d": "nn.conv3d",
    "relax.nn.max_pool2d": "nn.max_pool2d",
    "relax.nn.avg_pool2d": "nn.avg_pool2d",
    "relax.nn.softmax": "nn.softmax",
    "relax.matmul": "nn.batch_matmul",
    "relax.concat": "concatenate",
    "relax.add": "add",
    "relax.subtract": "subtract",
    "relax.multiply": "multiply",
    "relax.divide": "divide",
    "relax.maximum": "maximum",
    "relax.minimum": "minimum",
}
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
# and of activations
ACTIVATIONS = {
    "relax.abs": "abs",
    "relax.exp": "exp",
    "relax.log": "log",
    "relax.nn.gelu": "gelu",
    "relax.nn.relu": "nn.relu",
    "relax.nn.silu": "swish",
    "relax.round": "round",
    "relax.sigmoid": "sigmoid",
    "relax.sqrt": "sqrt",
    "relax.tanh": "tanh",
}
_HAVE_BIAS = ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense")


def compile_functions(
    functions: Sequence[Function],
    options: Mapping[str, Any],
    constant_names: Mapping[Constant, str],
) -> list[Module]:
    """The runtime modules of functions, one each."""
    if options:
        raise TVMError(f"relax.ext.dnnl has no options, got {list(options)}")
    create = get_global_func("runtime.DNNLJSONRuntimeCreate")
    modules = []
    for func in functions:
        graph = DNNLSerializer(func, constant_names).serialize()
        modules.append(create(graph.symbol, graph.get_json(), graph.const_names))
    return modules


class DNNLSerializer(JSONSerializer):
    """Writes the graph of one function."""

    def visit_call(self, call: Call) -> Entries:
        callee = self.callee(call)
        if isinstance(callee, Op):
            return self.add_node(self._kernel(callee.name, [call]), call)
        for param, arg in zip(callee.params, call.args, strict=True):
            self._entries[id(param)] = self.entries_of(arg)
        calls = [b.value for block in callee.body.blocks for b in block.bindings]
        variables = [b.var for block in callee.body.blocks for b in block.bindings]
        name = str(callee.attrs["Composite"])
        if not all([isinstance(c, Call) for c in calls]):
            raise _unsupported(name, call)
        return self.add_node(self._kernel(name, calls, variables), call)

    def _kernel(
        self, name: str, calls: Sequence[Any], variables: Sequence[Var] = ()
    ) -> JSONGraphNode:
        """The node of calls, each of the result of the one before."""
        first = 0
        if len(calls) > 1 and _is_weight(calls[0], calls[1], variables[0]):
            first = 1
        root = calls[first]
        node = JSONGraphNode(name, "kernel")
        operator = self._root(node, root, calls[0] if first else None)
        node.set_attr("root", operator)
        texts: list[str] = []
        for value, call in zip(variables[first:], calls[first + 1 :], strict=False):
            texts.append(self._post_op(node, operator, call, value, texts))
        if texts:
            node.set_attr("post_ops", texts)
        return node

    def _root(self, node: JSONGraphNode, call: Call, transposed: Call | None) -> str:
        name = _name(call)
        if (activation := _activation(call)) is not None:
            node.inputs = self.entries_of(call.args[0])
            return activation
        if name not in ROOTS:
            raise _unsupported(node.name, call)
        operator = ROOTS[name]
        args = list(call.args)
        if operator == "nn.batch_matmul":
            if transposed is not None and len(args[0].struct_info.dimensions) >= 2:
                node.inputs = [self.entries_of(a)[0] for a in (args[0], transposed.args[0])]
                return "nn.dense"
            if len({len(a.struct_info.dimensions) for a in args}) != 1:
                raise _unsupported(node.name, call)
            node.set_attr("transpose_a", 0)
            node.set_attr("transpose_b", 0)
        elif operator in BINARY and not _fits(args[0], call):
            if operator not in ("add", "multiply", "maximum", "minimum") or not _fits(
                args[1], call
            ):
                raise _unsupported(node.name, call)
            args.reverse()
        self._check(node.name, operator, call)
        self.set_attrs(node, call.attrs)
        node.inputs = [entry for arg in args for entry in self.entries_of(arg)]
        return operator

    @staticmethod
    def _check(name: str, operator: str, call: Call) -> None:
        """Reject attributes that oneDNN's operators do not have."""
        attrs = call.attrs
        if operator.startswith("nn.conv") and attrs.out_layout != attrs.data_layout:
            raise _unsupported(name, call)
        if "pool" in operator and any([int(d) != 1 for d in attrs.dilation]):
            raise _unsupported(name, call)

    def _post_op(
        self, node: JSONGraphNode, root: str, call: Call, value: Var, before: Sequence[str]
    ) -> str:
        if not any([arg is value for arg in call.args]):
            raise _unsupported(node.name, call)
        if (activation := _activation(call)) is not None:
            return activation
        if _name(call) != "relax.add" or root not in _HAVE_BIAS:
            raise _unsupported(node.name, call)
        other = next((arg for arg in call.args if arg is not value), value)
        kind = self._summand(node, root, other, call, before)
        node.inputs.append(self._single(other))
        return f"{kind}:{len(node.inputs) - 1}"

    def _single(self, expr: RelayExpr) -> JSONGraphNodeEntry:
        (entry,) = self.entries_of(expr)
        return entry

    @staticmethod
    def _summand(
        node: JSONGraphNode, root: str, other: RelayExpr, call: Call, before: Sequence[str]
    ) -> str:
        """Whether what is added is a bias or has the shape of the result."""
        shape = [int(d) for d in other.struct_info.dimensions]
        result = [int(d) for d in call.struct_info.dimensions]
        layout = node.attrs.get("data_layout", [""])[0]
        axis = layout.index("C") if layout else len(result) - 1
        bias = [n if i == axis else 1 for i, n in enumerate(result)]
        if not before and [1] * (len(result) - len(shape)) + shape == bias:
            return "bias"
        if shape == result and not any([text.startswith("sum") for text in before]):
            return "sum"
        raise _unsupported(node.name, call)


def _name(call: Call) -> str:
    return call.op.name if isinstance(call.op, Op) else ""


def _activation(call: Call) -> str | None:
    """An activation with its parameters; None of other operators."""
    name = _name(call)
    if name == "relax.clip":
        bounds: list[Any] = [a.value for a in call.args[1:] if isinstance(a, PrimValue)]
        low, high = [b.value for b in bounds]
        return f"clip:{float(low)!r}:{float(high)!r}"
    if name == "relax.nn.leakyrelu":
        return f"nn.leaky_relu:{float(call.attrs.alpha)!r}"
    return ACTIVATIONS.get(name)


def _is_weight(call: Call, product: Call, var: Var) -> bool:
    """Whether a product is that with a transposed matrix, as a dense layer has it."""
    if _name(call) != "relax.permute_dims" or _name(product) != "relax.matmul":
        return False
    rank = len(call.args[0].struct_info.dimensions)
    axes = call.attrs.axes
    is_swap = axes is None or [int(a) for a in axes] == [1, 0]
    return rank == 2 and is_swap and product.args[1] is var


def _fits(arg: RelayExpr, call: Call) -> bool:
    a, b = [[int(d) for d in e.struct_info.dimensions] for e in (arg, call)]
    return a == b


def _unsupported(name: str, call: Call) -> TVMError:
    return TVMError(
        f"oneDNN cannot run the composite function {name}, which has {_name(call) or call.op}",
        at=call,
        hint="an operator, then a bias, a summand of the result's shape and activations, in this order",
    )


if find_lib_path("libtvm_dnnl.so", optional=True):  # programs ask for the function to learn that
    register_func("relax.ext.dnnl", compile_functions, override=True)
