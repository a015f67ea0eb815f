"""Time of type inference and of the graph passes, on networks of 1, 2, 4 and 8 times the depth.

usage: python -m benchmarks.relay_passes [--operators 3000] [--repeat 3] [--passes]

CPU seconds of this process, the best of some runs: other work on the machine does not count.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import tvm
from tvm import relay
from tvm.ir.instrument import PassTimingInstrument
from tvm.relay import testing
from tvm.relay.pipeline import optimization

SCALES = (1, 2, 4, 8)


def chain(operators: int) -> tvm.IRModule:
    """Operators one after the other, of several kinds."""
    x = relay.var("x", shape=(4, 16))
    body = x
    for i in range(operators // 4):
        body = relay.nn.dense(body, relay.var(f"w{i % 8}", shape=(16, 16)))
        body = relay.add(body, x)
        body = relay.nn.relu(body)
        body = relay.reshape(body, (4, 16))
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))


def resnet(scale: int) -> tvm.IRModule:
    """ResNet-50 with `scale` times its blocks."""
    units = [3 * scale, 4 * scale, 6 * scale, 3 * scale]
    net = testing.resnet.resnet(
        units, 4, [64, 256, 512, 1024, 2048], 1000, data_shape=(1, 3, 224, 224)
    )
    return tvm.IRModule.from_expr(net)


def transformer(scale: int) -> tvm.IRModule:
    """12 layers of BERT-base's size, times `scale`; weights are parameters."""
    x = relay.var("x", shape=(128, 768))
    for layer in range(12 * scale):
        x = encoder_layer(x, layer)
    return tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(x), x))


def encoder_layer(x: relay.Expr, layer: int) -> relay.Expr:
    def linear(data: relay.Expr, name: str, rows: int, columns: int) -> relay.Expr:
        weight = relay.var(f"{name}{layer}", shape=(rows, columns))
        bias = relay.var(f"{name}{layer}_bias", shape=(rows,))
        return relay.nn.bias_add(relay.nn.dense(data, weight), bias)

    def heads(data: relay.Expr) -> relay.Expr:
        return relay.transpose(relay.reshape(data, (128, 12, 64)), (1, 0, 2))

    query, key, value = [heads(linear(x, name, 768, 768)) for name in "qkv"]
    scores = relay.nn.softmax(relay.nn.batch_matmul(query, key) * relay.const(0.125))
    mixed = relay.nn.batch_matmul(scores, relay.transpose(value, (0, 2, 1)))
    joined = relay.reshape(relay.transpose(mixed, (1, 0, 2)), (128, 768))
    x = normalised(x + linear(joined, "o", 768, 768), f"a{layer}")
    wide = linear(x, "up", 3072, 768)
    wide = wide * (relay.erf(wide * relay.const(0.7071)) + relay.const(1.0)) * relay.const(0.5)
    return normalised(x + linear(wide, "down", 768, 3072), f"b{layer}")


def normalised(x: relay.Expr, name: str) -> relay.Expr:
    gamma, beta = relay.var(f"{name}_g", shape=(768,)), relay.var(f"{name}_b", shape=(768,))
    return relay.nn.layer_norm(x, gamma, beta)


def best(
    make: Callable[[], tvm.IRModule], run: Callable[[tvm.IRModule], object], repeat: int
) -> float:
    """The least CPU time of `run` on fresh modules: types are kept in nodes."""
    times = []
    for _ in range(repeat):
        mod = make()
        begin = time.process_time()
        run(mod)
        times.append(time.process_time() - begin)
    return min(times)


def optimize(mod: tvm.IRModule) -> tvm.IRModule:
    with tvm.target.Target("llvm"), tvm.transform.PassContext(opt_level=3):
        return optimization()(mod)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operators", type=int, default=3000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--passes", action="store_true", help="print the time of each pass")
    arguments = parser.parse_args()
    infer = relay.transform.InferType()
    print(f"{'network':28}{'depth':>6}{'InferType s':>13}{'all passes s':>14}")
    rows: list[tuple[str, Callable[[int], tvm.IRModule]]] = [
        (f"chain of {arguments.operators}", lambda scale: chain(arguments.operators * scale)),
        ("resnet-50", resnet),
        ("bert-base encoder", transformer),
    ]
    for name, make in rows:
        for scale in SCALES:
            types = best(lambda: make(scale), infer, arguments.repeat)  # noqa: B023
            passes = best(lambda: make(scale), optimize, arguments.repeat)  # noqa: B023
            print(f"{name:28}{scale:>5}x{types:13.3f}{passes:14.3f}", flush=True)
    if arguments.passes:
        timing = PassTimingInstrument()
        with tvm.transform.PassContext(opt_level=3, instruments=[timing]):
            with tvm.target.Target("llvm"):
                optimization()(transformer(1))
            print(timing.render())


if __name__ == "__main__":
    main()
