"""The model zoo's architectures as PyTorch's exporters write them to ONNX, beside ONNX Runtime.

python -m tests.e2e.onnx_zoo [NAME ...] [--script] [--level N]
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch

from tests.e2e.model_zoo import (
    MODELS,
    allowed,
    build,
    print_differences,
    relative_difference,
    stop,
)
from tvm.contrib import onnx_backend


def export(name: str, script: bool = False) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A model as PyTorch writes it, by way of torch.export or of TorchScript, and its inputs."""
    model, inputs = build(name)
    buffer = io.BytesIO()
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        if script:
            torch.onnx.export(model, inputs, buffer, dynamo=False, opset_version=17)
        else:
            torch.onnx.export(model, inputs, dynamo=True, verbose=False).save(buffer)
    logging.disable(logging.NOTSET)
    proto = onnx.load_from_string(buffer.getvalue())
    given = {tensor.name for tensor in proto.graph.initializer}
    names = [value.name for value in proto.graph.input if value.name not in given]
    arrays = [tensor.numpy() for tensor in inputs]
    return proto, dict(zip(names, arrays, strict=len(names) == len(arrays)))


def difference(name: str, script: bool = False, level: int = 3) -> float:
    """How far our outputs are from ONNX Runtime's, relative to the largest."""
    proto, feed = export(name, script)
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, feed)
    found: Any = onnx_backend.prepare(proto, opt_level=level).run(feed)
    return max(relative_difference(a, b) for a, b in zip(found, expected, strict=True))


def main(arguments: Sequence[str]) -> int:
    """Command line: which models; the status is the number of those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="models, all by default")
    parser.add_argument("--script", action="store_true", help="through TorchScript")
    parser.add_argument("--level", type=int, default=3, help="the optimisation level")
    options = parser.parse_args(arguments)
    return print_differences(
        options.names or MODELS,
        lambda name: difference(name, options.script, options.level),
        allowed,
    )


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, stop)
    sys.exit(main(sys.argv[1:]))
