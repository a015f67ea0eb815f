"""Compile ResNet-18 for programs without Python: a shared library, a static one, and an input.

usage: python compile_model.py [--folder FOLDER] [--size PIXELS]

Writes to the folder:
    resnet18.so     the model as a shared library, with its weights
    resnet18.a      the same as a static library, whose names start with ``resnet18_``
    input.bin       float32 values of one picture, (1, 3, size, size)

The weights are random: a real model comes in through ``relay.frontend.from_onnx`` or ``from_pytorch``.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.backend import Runtime
from tvm.relay.testing import resnet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--size", type=int, default=224, help="height and width of the picture")
    arguments = parser.parse_args()
    shape = (3, arguments.size, arguments.size)
    module, params = resnet.get_workload(num_layers=18, batch_size=1, image_shape=shape)
    picture = np.random.default_rng(0).standard_normal((1, *shape)).astype("float32")
    picture.tofile(arguments.folder / "input.bin")

    shared = relay.build(module, target="llvm", params=params)
    shared.export_library(arguments.folder / "resnet18.so")

    system = Runtime("cpp", {"system-lib": True, "system-lib-prefix": "resnet18_"})
    static = relay.build(module, target="llvm", params=params, runtime=system)
    static.export_library(arguments.folder / "resnet18.a")

    executor = graph_executor.GraphModule(shared["default"](tvm.cpu()))
    executor.run(data=picture)
    scores = executor.get_output(0).numpy()[0]
    for index in np.argsort(-scores, kind="stable")[:5]:
        print(f"class {index:4d}  {scores[index]:.6f}")


if __name__ == "__main__":
    main()
