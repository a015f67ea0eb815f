"""The compiler `example_c`: it takes dense layers and sums, and writes plain C."""

from __future__ import annotations

import numpy as np
from tvm.relay.op.contrib.register import register_pattern_table

import tvm
from tvm import relay
from tvm.relay.dataflow_pattern import is_constant, is_op, wildcard
from tvm.relay.traverse import post_order

HEAD = """\
#include <tvm/runtime/c_runtime_api.h>
#define DATA(i) ((float*)((char*)((DLTensor*)args[i].v_handle)->data + ((DLTensor*)args[i].v_handle)->byte_offset))
"""

DENSE = """\
  for (int i = 0; i < {rows}; ++i)
    for (int j = 0; j < {units}; ++j) {{
      float sum = {b}[j];
      for (int k = 0; k < {depth}; ++k) sum += {x}[i * {depth} + k] * {w}[j * {depth} + k];
      {out}[i * {units} + j] = sum > 0 ? sum : 0;
    }}
"""

ELEMENTWISE = "  for (int i = 0; i < {size}; ++i) {out}[i] = {a}[i] {sign} {b}[i];\n"

SIGNS = {"add": "+", "multiply": "*"}


def has_equal_shapes(call: relay.Call) -> bool:
    """Whether nothing is broadcast."""
    a, b = (arg.checked_type for arg in call.args)
    return a.dtype == "float32" and list(a.shape) == list(b.shape)


for name in SIGNS:
    tvm.ir.register_op_attr(name, "target.example_c", has_equal_shapes)


@register_pattern_table("example_c")
def pattern_table() -> list[tuple]:
    dense = is_op("nn.dense")(wildcard(), is_constant())
    layer = is_op("nn.relu")(is_op("nn.bias_add")(dense, is_constant()))
    return [("example_c.dense_bias_relu", layer)]


@tvm.register_func("relay.ext.example_c.constant_updater", override=True)
def constants(func: relay.Function, symbol: str) -> dict:
    """None: they are in the text."""
    return {}


@tvm.register_func("relay.ext.example_c", override=True)
def generate(func: relay.Function) -> tvm.runtime.Module:
    """The C text of a function, in a module."""
    symbol = func.attrs["global_symbol"]
    text = Writer(func).text(symbol)
    return tvm.runtime._ffi_api.CSourceModuleCreate(text, "c", [symbol], [])


class Writer:
    """Writes the statements of one function: each value is an array."""

    def __init__(self, func: relay.Function) -> None:
        self.func = func
        self.globals: list[str] = []
        self.body: list[str] = []
        self.names: dict[relay.Expr, str] = {}

    def text(self, symbol: str) -> str:
        for i, param in enumerate(self.func.params):
            self.names[param] = f"DATA({i})"
        inside = self.inside()
        for node in post_order(self.func.body):
            if isinstance(node, relay.Constant) and id(node) not in inside:
                self.names[node] = self.array(node.data.numpy())
            elif isinstance(node, relay.Call) and id(node) not in inside:
                self.call(node)
        output = f"DATA({len(self.func.params)})"
        result = self.func.body
        size = int(np.prod([int(n) for n in result.checked_type.shape]))
        self.body.append(
            f"  for (int i = 0; i < {size}; ++i) {output}[i] = {self.names[result]}[i];\n"
        )
        arguments = "TVMValue* args, int* codes, int n, TVMValue* ret, int* ret_code, void* handle"
        return "".join(
            [HEAD, *self.globals, f"int {symbol}({arguments}) {{\n", *self.body, "  return 0;\n}\n"]
        )

    def inside(self) -> set[int]:
        """What is in the bodies of composite functions."""
        calls = [n for n in post_order(self.func.body) if isinstance(n, relay.Call)]
        functions = [n.op for n in calls if isinstance(n.op, relay.Function)]
        return {id(inner) for func in functions for inner in post_order(func.body)}

    def array(self, values: np.ndarray) -> str:
        name = f"constant{len(self.globals)}"
        items = ",".join([float(value).hex() for value in values.ravel()])
        self.globals.append(f"static const float {name}[] = {{{items}}};\n")
        return name

    def call(self, call: relay.Call) -> None:
        out = f"value{len(self.body)}"
        shape = [int(n) for n in call.checked_type.shape]
        size = int(np.prod(shape))
        self.globals.append(f"static float {out}[{size}];\n")
        self.names[call] = out
        if isinstance(call.op, relay.Function):  # the only composite function is the dense layer
            weight, bias = self.weights(call.op.body)
            x = self.names[call.args[0]]
            depth = int(call.args[0].checked_type.shape[-1])
            self.body.append(
                DENSE.format(
                    rows=size // shape[-1],
                    units=shape[-1],
                    depth=depth,
                    x=x,
                    w=weight,
                    b=bias,
                    out=out,
                )
            )
        else:
            a, b = (self.names[arg] for arg in call.args)
            self.body.append(
                ELEMENTWISE.format(size=size, out=out, a=a, b=b, sign=SIGNS[call.op.name])
            )

    def weights(self, relu: relay.Call) -> tuple[str, str]:
        bias_add = relu.args[0]
        weight, bias = bias_add.args[0].args[1], bias_add.args[1]
        return self.array(weight.data.numpy()), self.array(bias.data.numpy())
