"""Random convolutional networks, of floats and quantised: blocked layouts and folded factors.

    python -m tests.relay.random_networks --count 100 --seed 0 --quantised

Level 3 must give what level 0 gives: up to rounding, or up to some steps of the scale where the
tensors between operators are quantised.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections.abc import Callable

import numpy as np

import tvm
from tests.executors import outputs_of
from tvm import relay
from tvm.contrib.graph_executor import GraphModule
from tvm.relay.analysis import infer_type_of

Shape = tuple[int, ...]
STEP = 0.03125  # of quantised activations


class Network:
    """Grows a network over images; every step takes values that are there already."""

    def __init__(self, seed: int, is_quantised: bool) -> None:
        self.rng = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.is_quantised = is_quantised
        channels = self.rng.choice([1, 3, 4, 5, 8, 16, 17, 24])
        size = self.rng.choice([5, 7, 8, 10])
        self.input = relay.var("x", shape=(self.rng.choice([1, 1, 2]), channels, size, size))
        self.values: list[relay.Expr] = [self.rounded(self.input)]
        for _ in range(self.rng.randint(4, 12)):
            self.values.append(self.rounded(self.rng.choice(STEPS)(self, self.image())))

    def module(self) -> tvm.IRModule:
        results = [self.values[-1], *self.rng.sample(self.values, min(2, len(self.values)))]
        body = results[0] if self.rng.random() < 0.5 else relay.Tuple(results)
        return tvm.IRModule.from_expr(relay.Function([self.input], body))

    def data(self) -> np.ndarray:
        return self.array(*infer_type_of(self.input).concrete_shape)

    def array(self, *shape: int, low: float = -1, high: float = 1) -> np.ndarray:
        return self.numbers.uniform(low, high, shape).astype("float32")

    def const(self, *shape: int) -> relay.Expr:
        return relay.const(self.array(*shape))

    def image(self) -> relay.Expr:
        """One of the images, most often one of the last."""
        return self.rng.choice(self.values[-4:])

    def shape(self, x: relay.Expr) -> Shape:
        return tuple(infer_type_of(x).concrete_shape)

    def rounded(self, x: relay.Expr) -> relay.Expr:
        """The value as it is, or quantised and dequantised."""
        if not self.is_quantised:
            return x
        zero = relay.const(self.rng.choice([0, 0, 3, -7]), "int32")
        narrow = relay.qnn.op.quantize(x, relay.const(STEP), zero, out_dtype="int8")
        return relay.qnn.op.dequantize(narrow, relay.const(STEP), zero)

    def weight(self, *shape: int) -> relay.Expr:
        """Weights of sums that keep the size of what they sum up."""
        size = float(np.prod(shape[1:])) ** -0.5
        if not self.is_quantised:
            return relay.const(self.array(*shape) * np.float32(size))
        scale = relay.const((self.array(shape[0], low=0.5) * size / 64).astype("float32"))
        data = relay.const(self.numbers.integers(-127, 128, shape).astype("int8"))
        return relay.qnn.op.dequantize(data, scale, relay.const(0, "int32"), axis=0)


def convolved(net: Network, x: relay.Expr) -> relay.Expr:
    channels = net.shape(x)[1]
    kernel, groups = net.rng.choice([1, 1, 3, 3, 5]), 1
    filters = net.rng.choice([1, 3, 4, 7, 8, 16, 20, 32])
    if net.rng.random() < 0.25:
        groups = channels
        filters = channels * net.rng.choice([1, 1, 2])
    elif channels % 2 == 0 and net.rng.random() < 0.15:
        groups, filters = 2, 2 * filters
    strides = net.rng.choice([1, 1, 1, 2])
    dilation = net.rng.choice([1, 1, 1, 2]) if kernel > 1 else 1
    pad = dilation * (kernel // 2) if net.rng.random() < 0.8 else kernel
    out = relay.nn.conv2d(
        x, net.weight(filters, channels // groups, kernel, kernel),
        strides=strides, padding=pad, dilation=dilation, groups=groups,
    )  # fmt: skip
    return finished(net, out, filters)


def finished(net: Network, out: relay.Expr, channels: int) -> relay.Expr:
    """What often follows a convolution."""
    kind = net.rng.randrange(5)
    if kind == 0:
        out = relay.nn.bias_add(out, net.const(channels))
    elif kind == 1:
        out = relay.add(out, net.const(channels, 1, 1))
    elif kind == 2 and not net.is_quantised:
        spread = relay.const(net.array(channels, low=0.5))
        scale, shift, mean = [net.const(channels) for _ in range(3)]
        out = relay.nn.batch_norm(out, scale, shift, mean, spread)[0]
    elif kind == 3:
        out = relay.multiply(out, net.const(channels, 1, 1))
    ends = [relay.nn.relu, relay.sigmoid, lambda v: relay.clip(v, 0.0, 6.0), lambda v: v]
    if net.rng.random() < 0.2 and len(net.values) > 1:
        same = [v for v in net.values if net.shape(v) == net.shape(out)]
        out = relay.add(out, net.rng.choice(same)) if same else out
    return net.rng.choice(ends)(out)


def pooled(net: Network, x: relay.Expr) -> relay.Expr:
    ways: list[Callable[[], relay.Expr]] = [
        lambda: relay.nn.max_pool2d(x, (3, 3), strides=net.rng.randint(1, 2), padding=1),
        lambda: relay.nn.avg_pool2d(x, (2, 2), padding=(0, 0, 1, 1), ceil_mode=True),
        lambda: relay.nn.avg_pool2d(x, (3, 3), padding=1, count_include_pad=True),
        lambda: relay.nn.upsampling(x, 2, 2) if net.shape(x)[2] < 12 else relay.nn.relu(x),
    ]
    return net.rng.choice(ways)()


def joined(net: Network, x: relay.Expr) -> relay.Expr:
    """Concatenated along channels, or added: to images, or what broadcasts to them."""
    n, c, h, w = shape = net.shape(x)
    fitting = [v for v in net.values if (s := net.shape(v))[0] == n and s[2:] == (h, w)]
    if net.rng.random() < 0.4 and c < 64:
        return relay.concatenate([x, net.rng.choice(fitting)], axis=1)
    same = [v for v in fitting if net.shape(v) == shape]
    if net.rng.random() < 0.5:
        return relay.add(x, net.rng.choice(same))
    narrow = net.rng.choice([(), (1,), (w,), (h, 1), (h, w), (c, 1, 1), (1, c, 1, 1), (c, h, w)])
    other = net.const(*narrow)
    op = net.rng.choice([relay.add, relay.subtract, relay.multiply, relay.maximum])
    return op(x, other) if net.rng.random() < 0.5 else op(other, x)


def cut(net: Network, x: relay.Expr) -> relay.Expr:
    """A part of the channels or of the places."""
    c, h, w = net.shape(x)[1:]
    if c > 1 and net.rng.random() < 0.4:
        parts = relay.split(x, [net.rng.randint(1, c - 1)], axis=1)
        if net.rng.random() < 0.5:
            return relay.concatenate([parts[1], parts[0]], axis=1)
        return parts[net.rng.randrange(2)]
    axis = net.rng.choice([1, 1, 2, 3])
    extent = (c, h, w)[axis - 1]
    begin, step = net.rng.randrange((extent + 1) // 2), net.rng.choice([1, 1, 2])
    return relay.strided_slice(x, [begin], [extent], [step], axes=[axis])


def reshaped(net: Network, x: relay.Expr) -> relay.Expr:
    """Other forms, and back to an image."""
    n, c, h, w = net.shape(x)
    ways: list[Callable[[], relay.Expr]] = [
        lambda: relay.transpose(relay.nn.relu(relay.transpose(x, (0, 2, 3, 1))), (0, 3, 1, 2)),
        lambda: relay.reshape(relay.reshape(x, (n, c, h * w)), (n, c, h, w)),
        lambda: relay.transpose(x, (0, 1, 3, 2)),
        lambda: relay.reshape(x, (n, c * h, 1, w)) if c * h < 65 else x,
        lambda: shuffled(x, n, c, h, w),
        lambda: relay.nn.pad(x, [(0, 0), (0, net.rng.randrange(2)), (1, 0), (0, 1)]),
        lambda: relay.nn.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], net.rng.choice([0.0, -1.0])),
    ]
    return net.rng.choice(ways)()


def shuffled(x: relay.Expr, n: int, c: int, h: int, w: int) -> relay.Expr:
    if c % 2:
        return relay.reverse(x, axis=1)
    groups = relay.reshape(x, (n, 2, c // 2, h, w))
    return relay.reshape(relay.transpose(groups, (0, 2, 1, 3, 4)), (n, c, h, w))


def weighted(net: Network, x: relay.Expr) -> relay.Expr:
    """An image times factors of its channels, or of its places, that are computed from it."""
    c = net.shape(x)[1]
    if net.rng.random() < 0.3:
        return relay.multiply(x, relay.sigmoid(relay.mean(x, axis=1, keepdims=True)))
    pooled = relay.nn.global_avg_pool2d(x)
    return relay.multiply(x, relay.sigmoid(relay.nn.conv2d(pooled, net.weight(c, c, 1, 1))))


def elementwise(net: Network, x: relay.Expr) -> relay.Expr:
    ways = [relay.nn.relu, relay.tanh, relay.sigmoid, relay.nn.leaky_relu, lambda v: v * v * 0.5]
    made: relay.Expr = net.rng.choice([*ways[:4], lambda v: relay.clip(v, -1.0, 1.0)])(x)
    return made


STEPS: tuple[Callable[[Network, relay.Expr], relay.Expr], ...] = (
    convolved, convolved, convolved, convolved, pooled, joined, joined, cut, reshaped, weighted,
    elementwise,
)  # fmt: skip


def results(mod: tvm.IRModule, x: np.ndarray, level: int, target: str) -> list[np.ndarray]:
    with tvm.transform.PassContext(opt_level=level):
        module = GraphModule(relay.build(mod, target)["default"](tvm.cpu()))
    module.run(x=x)
    return outputs_of(module)


def check(seed: int, is_quantised: bool, target: str = "llvm") -> str | None:
    """What is wrong with the results of a network; None if they agree."""
    try:
        net = Network(seed, is_quantised)
        mod, x = net.module(), net.data()
        expected = results(mod, x, 0, "llvm -opt-level=1")
        found = results(mod, x, 3, target)
        if is_quantised:
            mod = relay.transform.InferType()(mod)
            integers = relay.transform.FakeQuantizationToInteger()(mod)
            found += results(integers, x, 3, target)
            expected = expected * 2
        for a, b in zip(found, expected, strict=True):
            compare(a, b, is_quantised)
    except Exception:
        return traceback.format_exc(limit=-3)
    return None


def compare(a: np.ndarray, b: np.ndarray, is_quantised: bool) -> None:
    assert a.shape == b.shape, (a.shape, b.shape)
    if not is_quantised:
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
        return
    steps = np.abs(a - b) / STEP
    assert steps.max(initial=0) <= 6, f"{steps.max()} steps apart"
    assert (steps > 1.5).mean() < 0.05, f"{(steps > 1.5).mean():.1%} more than a step apart"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="llvm")
    parser.add_argument("--quantised", action="store_true")
    options = parser.parse_args()
    failed = 0
    for seed in range(options.seed, options.seed + options.count):
        if (text := check(seed, options.quantised, options.target)) is not None:
            failed += 1
            print(f"seed {seed}:\n{text}", flush=True)
    print(f"{options.count} networks, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
