"""Blocks of memory joined, and constants named, before the virtual machine's code is made."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.ir.transform import Pass
from tvm.relay import transform
from tvm.relay.backend import vm
from tvm.relay.pipeline import memory_passes
from tvm.relay.transform.memory_plan import LiftConstants, MemoryPlan, iterative_let, mk_let


def network() -> tvm.IRModule:
    x = relay.var("x", shape=(3, 5))
    y = relay.annotation.stop_fusion(relay.exp(x) + relay.const(np.ones((3, 5), "float32")))
    z = relay.annotation.stop_fusion(relay.nn.softmax(y)) * relay.const(2.0)
    choice = relay.If(relay.less(relay.sum(z), relay.const(0.0)), relay.tanh(x), relay.nn.relu(z))
    return tvm.IRModule.from_expr(relay.Function([x], relay.concatenate([choice, y], 0)))


def planned(*passes: Pass) -> tvm.IRModule:
    steps = [transform.FuseOps(), transform.NameResults(), transform.ManifestAlloc(), *passes]
    with tvm.transform.PassContext(opt_level=3):
        return tvm.transform.Sequential([transform.InferType(), *steps])(network())


def allocations(mod: tvm.IRModule) -> int:
    return str(mod).count("memory.alloc_storage(")


@pytest.mark.parametrize("lifetimes", [(), (transform.ManifestLifetimes(),)])
def test_blocks_of_one_dtype_are_joined(lifetimes: tuple[Pass, ...]) -> None:
    assert allocations(planned(*lifetimes)) > 5
    after = planned(*lifetimes, MemoryPlan())
    assert allocations(after) == 4  # floats and the condition; one in each branch
    assert not relay.analysis.free_vars(after["main"])


@pytest.mark.parametrize(
    "extra", [[MemoryPlan()], [LiftConstants()], [LiftConstants(), MemoryPlan()]]
)
def test_programs_compute_the_same(extra: list[Pass], monkeypatch: pytest.MonkeyPatch) -> None:
    value = np.random.default_rng(0).standard_normal((3, 5)).astype("float32")
    plain = relay.create_executor("vm", mod=network()).evaluate()(value).numpy()
    *before, last = memory_passes()
    monkeypatch.setattr(vm, "memory_passes", lambda: [*before, *extra, last])
    again = relay.create_executor("vm", mod=network()).evaluate()(value).numpy()
    np.testing.assert_array_equal(plain, again)


def test_constants_are_named_at_the_beginning() -> None:
    body = planned(LiftConstants())["main"].body
    assert isinstance(body.value, relay.Constant)
    assert body.var.name_hint == "const0"


def test_lets_are_split_and_joined() -> None:
    x, y = relay.var("x"), relay.var("y")
    lets = mk_let([(x, relay.const(1)), (y, relay.const(2))], y)
    seen: list[relay.Expr] = []

    def each(variable: relay.Var, value: relay.Expr) -> tuple[relay.Var, relay.Expr]:
        seen.append(value)
        return variable, value

    tvm.ir.assert_structural_equal(iterative_let(lets, each, mk_let), lets)
    assert len(seen) == 2
