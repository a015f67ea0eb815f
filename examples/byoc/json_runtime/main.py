"""A model that an example runtime runs a part of: cut, built, exported, loaded and compared with numpy.

usage: python main.py [--show]

Writes to this folder model.so, the library; input.bin and expected.bin, float32 values of one run.
"""

from __future__ import annotations

import argparse

import generator  # registers the compiler
import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor


def model(rng: np.random.Generator) -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    x = relay.var("x", shape=(4, 16))
    hidden = relay.nn.relu(relay.nn.dense(x, relay.var("w", shape=(16, 16))))
    body = relay.nn.softmax(relay.multiply(relay.add(hidden, relay.var("b", shape=(4, 16))), x))
    shapes = {"w": (16, 16), "b": (4, 16)}
    params = {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)), params


def partition(mod: tvm.IRModule, params: dict[str, np.ndarray]) -> tvm.IRModule:
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = [
        relay.transform.InferType(),
        relay.transform.AnnotateTarget("example_json"),
        relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
    ]
    return tvm.transform.Sequential(passes)(mod)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", action="store_true", help="print the model as it is cut")
    arguments = parser.parse_args()
    generator.load_runtime()
    rng = np.random.default_rng(0)
    mod, params = model(rng)
    mod = partition(mod, params)
    if arguments.show:
        print(mod)
    relay.build(mod, target="llvm").export_library("model.so")

    module = graph_executor.GraphModule(tvm.runtime.load_module("model.so")["default"](tvm.cpu()))
    x = rng.standard_normal((4, 16)).astype("float32")
    module.run(x=x)
    logits = (np.maximum(x @ params["w"].T, 0) + params["b"]) * x
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-6)
    x.tofile("input.bin")
    expected.tofile("expected.bin")
    print("the results agree with numpy")


if __name__ == "__main__":
    main()
