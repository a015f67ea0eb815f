"""Programs of torch.export with open sizes, in the virtual machine, at several sizes.

python -m tests.e2e.open_zoo [NAME ...] [--list]

Each network is compiled once; the first axis of its inputs, and for sequences the second one, are
open.
"""

from __future__ import annotations

import argparse
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import tvm
from benchmarks.networks import FirstOutput
from tests.e2e.model_zoo import build, print_differences, relative_difference, stop
from tvm import relay

BATCHES = (2, 3, 1)
LENGTHS = (12, 7, 16)
# what is open beside the batch: the axes of a sequence
SEQUENCES = {
    "bert": (1,), "roberta": (1,), "distilbert": (1,), "electra": (1,), "mpnet": (1,),
    "albert": (1,), "opt": (1,), "gpt_neox": (1,), "llama": (1,), "mistral": (1,), "qwen2": (1,),
    "phi": (1,), "clip_text": (1,), "temporal": (2,),
}  # fmt: skip
IMAGES = (
    "resnet18", "mobilenet_v2", "mobilenet_v3_small", "squeezenet1_1", "shufflenet_v2_x0_5",
    "mnasnet0_5", "vgg11", "alexnet", "regnet_x_400mf", "unet", "vit", "deit", "convnext_tiny",
)  # fmt: skip
NAMES = (*IMAGES, *SEQUENCES)


def program(name: str) -> tuple[torch.nn.Module, torch.Tensor, Any]:
    """A model, its input and the exported program of open sizes."""
    model, (example,) = build(name)
    example = _sized(example, BATCHES[0], SEQUENCES.get(name, ()), LENGTHS[0])
    batch = torch.export.Dim("batch", min=1, max=64)
    length = torch.export.Dim("length", min=4, max=32)
    sizes = {0: batch, **dict.fromkeys(SEQUENCES.get(name, ()), length)}
    # a module whose parameters are *inputs has one argument, a tuple
    dynamic = ((sizes,),) if isinstance(model, FirstOutput) else (sizes,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model, example, torch.export.export(model, (example,), dynamic_shapes=dynamic)


def _sized(x: torch.Tensor, batch: int, axes: Sequence[int], length: int) -> torch.Tensor:
    shape = list(x.shape)
    shape[0] = batch
    for axis in axes:
        shape[axis] = length
    return torch.randn(shape) if x.is_floating_point() else torch.randint(3, 99, shape)


@torch.no_grad()
def difference(name: str) -> float:
    """The largest difference from PyTorch over several sizes, relative to the largest output."""
    model, example, exported = program(name)
    mod, params = relay.frontend.from_exported_program(exported)
    with tvm.transform.PassContext(opt_level=3):
        executable = relay.vm.compile(mod, target="llvm", params=params)
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    worst = 0.0
    for batch, length in zip(BATCHES, LENGTHS, strict=True):
        x = _sized(example, batch, SEQUENCES.get(name, ()), length)
        expected = model(x)
        result = machine.invoke("main", tvm.nd.array(x.numpy()))
        found = [result] if hasattr(result, "numpy") else list(result)
        wanted = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        for ours, tensor in zip(found, wanted, strict=True):
            worst = max(worst, relative_difference(np.asarray(ours.numpy()), tensor.numpy()))
    return worst


def main(arguments: Sequence[str]) -> int:
    """Command line: which networks; the status is the number of those that differ."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="networks, all by default")
    parser.add_argument("--list", action="store_true", help="print the names")
    options = parser.parse_args(arguments)
    if options.list:
        print("\n".join(NAMES))
        return 0
    return print_differences(options.names or NAMES, difference)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, stop)
    sys.exit(main(sys.argv[1:]))
