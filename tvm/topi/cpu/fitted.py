"""The constants of the cost models that were fitted to measured kernels.

`python -m benchmarks.tile_cost` sets what they predict beside what kernels take. What a processor can do
at most is not fitted: it stands in `tvm/target/cpu_timing.py`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TileRates:
    """How the loads and the traffic of a micro-kernel get along with its multiply-adds."""

    load: float  # cycles of a load of a vector or a broadcast
    l2_bandwidth: float  # bytes a cycle, of operands that L1 does not hold
    loads_overlap: bool = True  # with chains of multiply-adds and traffic, which else they lengthen
    load_contention: float = 0.0  # cycles by which each load lengthens a step
    load_slowdown: float = 0.0  # share by which a load for each multiply-add lengthens a step


CONV2D = TileRates(load=0.5, l2_bandwidth=24.0, load_contention=0.1)
MATMUL = TileRates(load=0.5, l2_bandwidth=64 / 2.25, loads_overlap=False, load_contention=0.125)
# rows of A and B come from transformed tiles, whose lines collide
WINOGRAD = TileRates(load=0.8, l2_bandwidth=24.0, load_slowdown=0.1)

# conv2d: cycles a multiply-add for each vector of a panel that L1 does not hold
CONV2D_STREAMED_VECTOR = 0.02
# makes the model prefer tiles as low as keep the multipliers busy
CONV2D_UNUSUAL_HEIGHT = 0.2
# cycles a multiply-add of a plain convolution as a whole
CONV2D_FMA = 0.52
# of data without a border, which has to be copied where columns are added; and what a tile's edge takes, in columns
CONV2D_COPY = 1.15
CONV2D_TILE_EDGE = 2.0
# operations that it takes to cut off a pixel's channels and bring the rest into other blocks
CONV2D_CHANGE_OF_BLOCKS = 640
# operations that it takes to bring one element into another layout, and how much longer rows of pixels take
CONV2D_LAYOUT_TRANSFORM = 80
CONV2D_PLAIN_ROWS = 1.1
# how much faster than float32 an instruction for pairs of bfloat16 multiplies
BFLOAT16_SPEED = 1.85

# Winograd: cycles of the transforms of a tile, for each vector of input or output channels, by the tile
WINOGRAD_TRANSFORM = {2: 40, 4: 110}
# cycles of the steps that a plain convolution does without: their buffers, threads that wait for each other
WINOGRAD_STEPS = 5000
# how much longer sums take that registers do not hold all the time
WINOGRAD_SPILLED_SUMS = 1.12

# products: cycles for each element that is packed
MATMUL_PACKING = 0.3
# cycles for each element of a product beyond L2 that is written panel by panel
MATMUL_FAR_PRODUCT = 0.6
# how much longer it takes to read the left operand from beyond L2 for each panel of the right one
MATMUL_FAR_ROWS = 1.15
# how much longer it takes where rows of the right operand push one another out of L2
MATMUL_CONFLICTS = 1.8
# what it takes to begin a block of rows, in tiles
MATMUL_BLOCK_START = 0.2

# of a configuration that is tried by tuners only, where no cost is known
UNUSUAL = 1.1
