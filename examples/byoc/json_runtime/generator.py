"""The compiler `example_json`: it takes dense layers, sums, products and nn.relu of float32."""

from __future__ import annotations

import ctypes
from pathlib import Path

import tvm
from tvm import relay
from tvm.relay.backend.contrib import JSONSerializer

LIBRARY = Path("libexample_runtime.so")


def has_equal_shapes(call: relay.Call) -> bool:
    a, b = (arg.checked_type for arg in call.args)
    return a.dtype == "float32" and list(a.shape) == list(b.shape)


def is_float(call: relay.Call) -> bool:
    return call.checked_type.dtype == "float32"


CHECKS = {
    "add": has_equal_shapes, "multiply": has_equal_shapes, "nn.dense": is_float, "nn.relu": is_float
}  # fmt: skip
for name, check in CHECKS.items():
    tvm.ir.register_op_attr(name, "target.example_json", check)


def load_runtime(library: Path = LIBRARY) -> None:
    """Make the runtime's modules known to this process."""
    ctypes.CDLL(str(library.resolve()), ctypes.RTLD_GLOBAL)


def serializer(func: relay.Function) -> JSONSerializer:
    return JSONSerializer(str(func.attrs["global_symbol"]), func).serialize()


@tvm.register_func("relay.ext.example_json.constant_updater", override=True)
def constants(func: relay.Function, symbol: str) -> dict[str, tvm.nd.NDArray]:
    return serializer(func).constants


@tvm.register_func("relay.ext.example_json", override=True)
def generate(func: relay.Function) -> tvm.runtime.Module:
    graph = serializer(func)
    create = tvm.get_global_func("runtime.ExampleJSONRuntimeCreate")
    return create(graph.symbol, graph.get_json(), graph.const_names)
