"""Functions of relay as functions of relax."""

import numpy as np
import pytest

import tvm
from tvm import relax, relay
from tvm.relax.testing.relay_translator import from_relay


def run(mod, *inputs):
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(x) for x in inputs]).numpy()


def random(*shape):
    return np.random.default_rng(0).normal(size=shape).astype("float32")


def test_operators_are_loop_programs_of_any_batch() -> None:
    x, w = relay.var("x", shape=(relay.Any(), 4)), relay.var("w", shape=(3, 4))
    func = relay.Function([x, w], relay.nn.relu(relay.nn.dense(x, w)))
    mod = from_relay(tvm.IRModule.from_expr(func)["main"], "llvm")
    assert {v.name_hint for v in mod.get_global_vars()} >= {"dense", "relu", "main"}
    weight = random(3, 4)
    for rows in (1, 5):
        data = random(rows, 4)
        want = np.maximum(data @ weight.T, 0)
        np.testing.assert_allclose(run(mod, data, weight), want, rtol=1e-5, atol=1e-6)


def test_parameters_and_attributes() -> None:
    x, w = relay.var("x", shape=(2, 4)), relay.var("w", shape=(4,))
    func = relay.Function([x, w], relay.sum(x + w, axis=1))
    mod = from_relay(func, "llvm", {"w": tvm.nd.array(random(4))}, append_op_attrs=True)
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    assert list(mod["sum"].attrs["op_attrs"]["axis"]) == [1]
    assert str(mod["sum"].attrs["op_attrs"]["op_name"]) == "sum"
    data = random(2, 4)
    want = (data + random(4)).sum(1)
    np.testing.assert_allclose(run(mod, data), want, rtol=1e-5, atol=1e-6)


def test_control_flow_is_refused() -> None:
    x = relay.var("x", shape=())
    func = relay.Function([x], relay.If(relay.less(x, relay.const(0.0)), x, -x))
    with pytest.raises(tvm.error.OpNotImplemented, match="If is not translated"):
        from_relay(func, "llvm")
