"""A model whose dense layers are C: cut, built, exported, loaded again and compared with numpy.

usage: python main.py [--folder FOLDER] [--show]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import generator  # noqa: F401 - registers the compiler
import numpy as np
from tvm.relay.op.contrib.register import get_pattern_table

import tvm
from tvm import relay
from tvm.contrib import graph_executor


def model(rng: np.random.Generator) -> tuple[tvm.IRModule, dict[str, np.ndarray]]:
    x = relay.var("x", shape=(4, 16))
    dense = relay.nn.dense(x, relay.var("w", shape=(16, 16)))
    hidden = relay.nn.relu(relay.nn.bias_add(dense, relay.var("b", shape=(16,))))
    body = relay.nn.softmax(relay.multiply(relay.add(hidden, x), x))
    params = {
        n: rng.standard_normal(s).astype("float32") for n, s in {"w": (16, 16), "b": 16}.items()
    }
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)), params


def partition(mod: tvm.IRModule, params: dict[str, np.ndarray]) -> tvm.IRModule:
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = [
        relay.transform.InferType(),
        relay.transform.MergeComposite(get_pattern_table("example_c")),
        relay.transform.AnnotateTarget("example_c"),
        relay.transform.MergeCompilerRegions(),
        relay.transform.PartitionGraph(),
    ]
    return tvm.transform.Sequential(passes)(mod)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.mkdtemp()))
    parser.add_argument("--show", action="store_true", help="print the C text")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    mod, params = model(rng)
    lib = relay.build(partition(mod, params), target="llvm")
    if arguments.show:
        print(next(m for m in lib.lib.imported_modules if m.type_key == "c").get_source())
    path = arguments.folder / "model.so"
    lib.export_library(path)

    module = graph_executor.GraphModule(tvm.runtime.load_module(path)["default"](tvm.cpu()))
    x = rng.standard_normal((4, 16)).astype("float32")
    module.run(x=x)
    logits = (np.maximum(x @ params["w"].T + params["b"], 0) + x) * x
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-6)
    print("the results agree with numpy")


if __name__ == "__main__":
    main()
