"""torchvision's quantisable networks, quantised by PyTorch, through the importer.

python -m tests.e2e.quantized_models [NAME ...] [--engine fbgemm] [--image 224]

A step is the scale of the network's last quantised layer.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence

import numpy as np
import torch

import tvm
from benchmarks.zoo import calibrate, vision
from tvm import relay
from tvm.contrib import graph_executor

NETWORKS = (
    "resnet18", "resnet50", "resnext101_32x8d", "mobilenet_v2", "mobilenet_v3_large",
    "shufflenet_v2_x1_0", "googlenet", "inception_v3",
)  # fmt: skip
# what the network's last pooling needs
LEAST_IMAGE = {"inception_v3": 299}


def quantized(name: str, engine: str, size: int) -> tuple[torch.nn.Module, torch.Tensor]:
    """A network in integers, its statistics and ranges those of random images, and an image."""
    torch.manual_seed(0)
    torch.backends.quantized.engine = engine
    options = {"init_weights": False} if name in LEAST_IMAGE or name == "googlenet" else {}
    network = getattr(vision.quantization, name)(weights=None, quantize=False, **options)
    image = torch.randn(1, 3, size, size)
    calibrate(network, (image,))
    network.eval()
    with torch.no_grad():
        network.fuse_model()
        network.qconfig = torch.ao.quantization.get_default_qconfig(engine)
        torch.ao.quantization.prepare(network, inplace=True)
        network(image)
        torch.ao.quantization.convert(network, inplace=True)
    return network, image


def steps_off(name: str, engine: str, size: int) -> tuple[float, float, int]:
    """The greatest difference in steps, the share that differs, and the steps the results span."""
    network, image = quantized(name, engine, size)
    with torch.no_grad():
        expected = network(image).numpy()
        traced = torch.jit.trace(network, image)
    mod, params = relay.frontend.from_pytorch(traced, [("x", tuple(image.shape))])
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params)
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(x=image.numpy())
    step = np.diff(np.unique(expected)).min()
    gap = np.round(np.abs(module.get_output(0).numpy() - expected) / step)
    return float(gap.max()), float((gap > 0).mean()), round(float(np.ptp(expected)) / step)


def main(arguments: Sequence[str]) -> int:
    """Command line; the status is the number of networks that are more than a step off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(NETWORKS))
    parser.add_argument("--engine", default="fbgemm", choices=["fbgemm", "x86", "onednn"])
    parser.add_argument("--image", type=int, default=224)
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore")
    failed = 0
    for name in options.names:
        size = max(options.image, LEAST_IMAGE.get(name, 0))
        worst, share, span = steps_off(name, options.engine, size)
        failed += worst > 1
        print(f"{'ok  ' if worst <= 1 else 'FAIL'} {name:20} {options.engine:7} {worst:.0f} steps "
              f"of {span}, {100 * share:.1f} % differ", flush=True)  # fmt: skip
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
