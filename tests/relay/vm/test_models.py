"""Networks and random programs give the same results in every way to run them."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.relay.vm.common import run_vm, same
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.testing import mlp
from tvm.runtime.vm import VirtualMachine

UNARY = [relay.exp, relay.nn.relu, relay.sigmoid, relay.negative, lambda e: relay.sum(e, 1, True)]
BINARY = [relay.add, relay.multiply, relay.maximum, relay.subtract]


def random_program(seed: int, rows: object) -> relay.Function:
    """A function of two tensors and a condition: operators, lets, branches, tuples, functions."""
    rng = np.random.default_rng(seed)
    x, y = relay.var("x", shape=(rows, 4)), relay.var("y", shape=(1, 4))
    c = relay.var("c", shape=(), dtype="bool")
    values: list[relay.Expr] = [x, y, relay.const(np.float32(rng.uniform(-1, 1)))]

    def pick() -> relay.Expr:
        return values[rng.integers(len(values))]

    for _ in range(8):
        kind = rng.integers(5)
        if kind == 0:
            values.append(relay.tanh(BINARY[rng.integers(len(BINARY))](pick(), pick())))
        elif kind == 1:
            wide = relay.add(pick(), relay.zeros_like(x))
            values.append(relay.tanh(UNARY[rng.integers(len(UNARY))](wide)))
        elif kind == 2:
            wide = relay.add(pick(), relay.zeros_like(x))
            values.append(relay.If(c, relay.tanh(wide), relay.nn.relu(wide)))
        elif kind == 3:
            pair = relay.Tuple([pick(), pick()])
            values.append(relay.TupleGetItem(pair, int(rng.integers(2))))
        else:
            v = relay.var("v")
            values.append(relay.Let(v, relay.tanh(pick()), relay.add(v, v)))
    return relay.Function([x, y, c], relay.Tuple([values[-1], pick(), pick()]))


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_agree_with_the_interpreter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((3, 4)).astype("float32")
    y = rng.standard_normal((1, 4)).astype("float32")
    taken = np.array(bool(seed % 2))
    interpreter = relay.create_executor("debug")
    expected = interpreter.evaluate(random_program(seed, 3))(x, y, taken)
    expected = [e.numpy() for e in expected]
    for opt_level in (0, 3):
        same(run_vm(random_program(seed, 3), x, y, taken, opt_level=opt_level), expected)
    same(run_vm(random_program(seed, relay.Any()), x, y, taken, opt_level=seed % 4), expected)


def test_a_network_agrees_with_the_graph_executor() -> None:
    mod, params = mlp.get_workload(batch_size=2, image_shape=(1, 8, 8))
    x = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype("float32")
    lib = relay.build(mod, "llvm", params=params)
    graph = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    graph.run(data=x)
    machine = VirtualMachine(relay.vm.compile(mod, "llvm", params=params), tvm.cpu())
    same(machine.run(x).numpy(), graph.get_output(0).numpy())


def test_the_executor_of_expressions() -> None:
    x = relay.var("x", shape=(relay.Any(),))
    evaluate = relay.create_executor("vm").evaluate(relay.Function([x], relay.exp(x)))
    for n in (1, 3):
        same(evaluate(np.ones(n, "float32")).numpy(), np.full(n, np.e))


def test_optimised_functions_have_hashes() -> None:
    x = relay.var("x", shape=(2,))
    mods = [
        relay.vm.VMCompiler().optimize(tvm.IRModule.from_expr(relay.Function([x], body)), "llvm")[0]
        for body in (relay.exp(x), relay.exp(x), relay.log(x))
    ]
    first, same, other = [mod["main"].attrs["hash"] for mod in mods]
    assert first == same != other
