"""What the cost model predicts for tiles, beside what they take: `tvm/topi/cpu/fitted.py` was fitted by this.

usage: python -m benchmarks.tile_cost [--repeat N]

Every tile that the model would let tuners try is built and run on one thread. A row of the table names the
kernel, the model's tile and the fastest one, how much slower the model's is, and the correlation of the ranks.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import tvm
from benchmarks.peak import TARGET
from benchmarks.timing import seconds_of
from tvm import te, topi
from tvm.target.cpu import cpu_info
from tvm.topi.configuration import Choices
from tvm.topi.nn.conv2d.cpu import conv2d_choices
from tvm.topi.nn.dense.cpu import masked_matmul_choices

MATMULS = ((64, 256, 256), (128, 768, 64), (197, 64, 197))
CONVOLUTIONS = ((64, 56, 3), (256, 14, 3), (128, 28, 1))  # channels, columns, window


@dataclass(frozen=True)
class Kernel:
    """A kernel with its candidates."""

    name: str
    choices: Choices[Any]
    declare: Callable[[], list[te.Tensor]]  # its arguments, the output last
    schedule: Callable[[te.Tensor, Any], te.Schedule]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--repeat", type=int, default=5, help="the best of so many runs; 5 by default"
    )
    arguments = parser.parse_args()
    print(
        "| kernel | model's tile | fastest tile | slower by | rank correlation |\n|---|---|---|---|---|"
    )
    with tvm.target.Target(f"{TARGET} -num-cores=1"):
        for kernel in kernels():
            print(row(kernel, arguments.repeat), flush=True)


def kernels() -> Iterator[Kernel]:
    info = cpu_info()
    for rows, columns, inner in MATMULS:
        shapes = [(rows, inner), (inner, columns)]
        choices = masked_matmul_choices(rows, columns, "float32", info)
        assert choices is not None
        yield Kernel(
            f"product of {shapes[0]} and {shapes[1]}",
            choices,
            lambda shapes=shapes: _with_result(shapes, topi.nn.matmul),
            topi.x86.dense.schedule_dense_nopack,
        )
    block = info.fp32_lanes
    for channels, columns, window in CONVOLUTIONS:
        chunks, pad = channels // block, window // 2
        shapes = [
            (1, chunks, columns, columns, block),
            (chunks, chunks, window, window, block, block),
        ]
        layout = f"NCHW{block}c"
        yield Kernel(
            f"convolution of {channels}x{columns}x{columns} by {window}x{window}",
            conv2d_choices(chunks, columns, columns, 1, channels * window**2, info),
            lambda shapes=shapes, pad=pad, layout=layout: _with_result(
                shapes,
                lambda x, w: topi.nn.conv2d_NCHWc(x, w, 1, pad, 1, layout, layout, "float32"),
            ),
            topi.x86.schedule_conv2d_NCHWc,
        )


def _with_result(
    shapes: list[tuple[int, ...]], compute: Callable[..., te.Tensor]
) -> list[te.Tensor]:
    arguments = [te.placeholder(shape, name=f"p{i}") for i, shape in enumerate(shapes)]
    return [*arguments, compute(*arguments)]


def row(kernel: Kernel, repeat: int) -> str:
    """A row of the table."""
    configs = list(kernel.choices.configs())
    seconds = np.array([measured(kernel, config, repeat) for config in configs])
    predicted = np.array([kernel.choices.cost(config) for config in configs])
    chosen, best = int(np.argmin(predicted)), int(np.argmin(seconds))
    ranks = [np.argsort(np.argsort(values)) for values in (predicted, seconds)]
    correlation = float(np.corrcoef(*ranks)[0, 1]) if len(configs) > 1 else 1.0
    slower = seconds[chosen] / seconds[best] - 1
    return f"| {kernel.name} | {configs[chosen]} | {configs[best]} | {slower:.0%} | {correlation:.2f} |"


def measured(kernel: Kernel, config: Any, repeat: int) -> float:
    """Seconds of a kernel with a tile."""
    arguments = kernel.declare()
    function = tvm.build(
        kernel.schedule(arguments[-1], config), arguments, tvm.target.Target.current()
    )
    rng = np.random.default_rng(0)
    arrays = [tvm.nd.array(rng.random([int(d) for d in t.shape], "float32")) for t in arguments]
    return min([seconds_of(lambda: function(*arrays)) for _ in range(repeat)])


if __name__ == "__main__":
    main()
