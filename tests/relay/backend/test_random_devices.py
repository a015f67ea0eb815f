"""Random programs whose operators are scattered over two devices give what they gave on one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tvm
from tests.relay.random_programs import flat, program
from tvm import relay
from tvm.relay.function import is_primitive
from tvm.relay.op.annotation import on_device
from tvm.relay.traverse import rewrite_function
from tvm.runtime.vm import VirtualMachine

CPU, EXT = tvm.cpu(0), tvm.ext_dev(0)
TARGETS = {"cpu": "llvm", "ext_dev": "ext_dev"}


def scattered(mod: tvm.IRModule, rng: random.Random) -> tvm.IRModule:
    """The module with two operators of five on the extension device, all others on the processor."""

    def is_tensor(expr: relay.Expr) -> bool:
        return isinstance(expr.checked_type, relay.TensorType)

    def rewrite(old: relay.Expr, new: relay.Expr) -> relay.Expr:
        is_call = isinstance(old, relay.Call) and isinstance(old.op, tvm.ir.Op)
        if not is_call or rng.random() > 0.4 or not all([is_tensor(e) for e in (old, *old.args)]):
            return new
        args = [a if isinstance(a, relay.Constant) else on_device(a, CPU) for a in new.args]
        moved = on_device(relay.Call(new.op, args, new.attrs), EXT)
        return on_device(moved, CPU, constrain_body=False, constrain_result=True)

    functions = {
        gvar: rewrite_function(func, rewrite, is_primitive) for gvar, func in mod.functions.items()
    }
    return relay.transform.InferType()(mod.with_functions(functions))


def same(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=2e-2, atol=1e-3)


def run_built(mod: tvm.IRModule, kind: str, args: list[Any]) -> list[np.ndarray]:
    lib = relay.build(mod, TARGETS, executor=relay.backend.Executor(kind))
    model = lib["default"](CPU, EXT)
    for index, value in enumerate(args):
        model["set_input"](index, tvm.nd.array(np.asarray(value)))
    model["run"]()
    return [model["get_output"](i).numpy() for i in range(model["get_num_outputs"]())]


@pytest.mark.parametrize("seed", [200, 201, 203, 205, 206, 212])
def test_devices_change_no_value(seed: int) -> None:
    made, rng = program(seed), random.Random(seed)
    expected = flat(relay.create_executor("debug", mod=made.mod).evaluate()(*made.args))
    mod = scattered(made.mod, rng)
    with tvm.transform.PassContext(opt_level=rng.choice([0, 3])):
        exe = relay.vm.compile(mod, TARGETS)
        same(flat(VirtualMachine(exe, [CPU, EXT]).run(*made.args)), expected)
        for kind in ("graph", "aot") if made.kind.is_graph and not made.kind.is_dynamic else ():
            same(run_built(mod, kind, made.args), expected)
