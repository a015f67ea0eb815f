"""Values are placed on devices, and copied where they are needed elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.op.annotation import function_on_device, on_device
from tvm.relay.transform import PlanDevices
from tvm.target.compilation_config import make_compilation_config

CPU, EXT = tvm.cpu(0), tvm.ext_dev(0)
CONFIG = make_compilation_config(tvm.transform.PassContext.current(), tvm.target.Target("llvm"))
x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))


def planned(func: relay.Function) -> relay.Function:
    return PlanDevices(CONFIG)(tvm.IRModule.from_expr(func))["main"]


def copies(func: relay.Function) -> list[tuple[int, int]]:
    return [
        (n.attrs.src_virtual_device.device_type_int, n.attrs.dst_virtual_device.device_type_int)
        for n in relay.analysis.post_order(func)
        if isinstance(n, relay.Call) and n.op.name == "device_copy"
    ]


def test_values_without_hints_live_on_the_default_device() -> None:
    func = planned(relay.Function([x, y], relay.exp(x) + y))
    assert copies(func) == []
    assert [d.device_type_int for d in func.attrs["param_virtual_devices"]] == [1, 1]
    assert func.attrs["result_virtual_device"].device_type_int == 1
    assert func.body.virtual_device_.device_type_int == 1


def test_value_on_another_device_is_copied() -> None:
    func = planned(relay.Function([x, y], on_device(relay.exp(x), EXT) + y))
    assert "on_device" not in relay.testing.count_ops(func)
    assert copies(func) == [(12, 1)]
    # what makes the value lives there as well
    assert [d.device_type_int for d in func.attrs["param_virtual_devices"]] == [12, 1]
    assert set(relay.analysis.collect_device_info(func).values()) == {1, 12}


def test_places_go_through_lets_branches_and_calls() -> None:
    a, c, f, z = relay.var("a"), relay.var("c", "bool"), relay.var("f"), relay.var("z", shape=(2,))
    body = relay.Let(a, on_device(relay.exp(x), EXT), relay.If(c, a + y, y))
    assert copies(planned(relay.Function([x, y, c], body))) == [(12, 1)]
    inner = relay.Function([z], on_device(z, EXT, constrain_result=True))
    mod = tvm.IRModule.from_expr(relay.Function([x], on_device(inner(x), CPU)))
    with pytest.raises(tvm.error.TVMError, match="one place for a value"):
        PlanDevices(CONFIG)(mod)
    del f


def test_functions_say_where_their_ends_live() -> None:
    func = planned(
        function_on_device(relay.Function([x, y], x + on_device(y, EXT)), [CPU, EXT], CPU)
    )
    assert copies(func) == [(12, 1)]
    with pytest.raises(tvm.error.TVMError, match=r"got device 1\(0\) and device 12\(0\)"):
        planned(function_on_device(relay.Function([x, y], x + y), [CPU, EXT], CPU))


def test_copies_between_one_device_are_dropped() -> None:
    func = planned(relay.Function([x], relay.exp(relay.device_copy(x, CPU, CPU))))
    assert copies(func) == []
    kept = planned(relay.Function([x], relay.exp(relay.device_copy(x, EXT, CPU))))
    assert copies(kept) == [(12, 1)]


def test_planned_programs_run() -> None:
    func = planned(relay.Function([x, y], relay.exp(x) + on_device(y, CPU)))
    data = np.array([1, 2], "float32")
    found = relay.create_executor("graph").evaluate(func)(data, data)
    np.testing.assert_allclose(found.numpy(), np.exp(data) + data, rtol=1e-6)
