"""Values are placed on devices, and copied where they are needed elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.op.annotation import function_on_device, on_device
from tvm.relay.transform import PlanDevices
from tvm.target import Target, VirtualDevice, make_compilation_config

CPU, EXT = tvm.cpu(0), tvm.ext_dev(0)
TARGETS = [Target("llvm"), Target("ext_dev")]
CONFIG = make_compilation_config(tvm.transform.PassContext.current(), TARGETS)
PLACES = {"VirtualDevice": [VirtualDevice(CPU, TARGETS[0]), VirtualDevice(EXT, TARGETS[1])]}
x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
T = "Tensor[(2,), float32]"
HERE, THERE = "virtual_device=meta[VirtualDevice][0]", "virtual_device=meta[VirtualDevice][1]"
COPY_BACK = "src_virtual_device=meta[VirtualDevice][1], dst_virtual_device=meta[VirtualDevice][0]"

COPY_THERE = "src_virtual_device=meta[VirtualDevice][0], dst_virtual_device=meta[VirtualDevice][1]"


def planned(func: relay.Function) -> relay.Function:
    return PlanDevices(CONFIG)(tvm.IRModule.from_expr(func))["main"]


def parsed(text: str) -> tvm.IRModule:
    core = tvm.IRModule()
    core.import_from_std("core.rly")
    return relay.parse(text, "from_string", core, PLACES)


def check(before: str, after: str) -> None:
    """Planning gives a program, whose text reads as the same one, and which is not planned anew."""
    found = PlanDevices(CONFIG)(parsed(before))
    expected = parsed(after)
    tvm.ir.assert_structural_equal(found, expected, True)
    assert found.astext() == expected.astext() == relay.parse(found.astext()).astext()
    tvm.ir.assert_structural_equal(PlanDevices(CONFIG)(found), found, True)


def kinds(func: relay.Function) -> tuple[list[int], int]:
    """The kinds of device of parameters and result."""
    return [p.virtual_device_.device_type_int for p in func.params], (
        func.virtual_device_.device_type_int
    )


def copies(func: relay.Function) -> list[tuple[int, int]]:
    return [
        (n.attrs.src_virtual_device.device_type_int, n.attrs.dst_virtual_device.device_type_int)
        for n in relay.analysis.post_order(func)
        if isinstance(n, relay.Call) and n.op is tvm.ir.Op.get("device_copy")
    ]


def test_values_without_hints_live_on_the_default_device() -> None:
    func = planned(relay.Function([x, y], relay.exp(x) + y))
    assert copies(func) == [] and kinds(func) == ([1, 1], 1)
    assert func.body.virtual_device_.device_type_int == 1
    assert x.virtual_device_ is None  # the program given is left as it is


def test_value_on_another_device_is_copied() -> None:
    check(
        f"def @main(%x: {T}, %y: {T}) {{ %0 = exp(%x); %1 = on_device(%0, {THERE}); add(%1, %y) }}",
        f"""def @main(%x {{{THERE}}}: {T}, %y {{{HERE}}}: {T}, {HERE}) -> {T} {{
              %0 = exp(%x);
              %1 = on_device(%0, {THERE}, constrain_result=True);
              %2 = device_copy(%1, {COPY_BACK});
              add(%2, %y) }}""",
    )
    func = planned(relay.Function([x, y], on_device(relay.exp(x), EXT) + y))
    assert set(relay.analysis.collect_device_info(func).values()) == {1, 12}


def test_variables_live_where_they_are_bound() -> None:
    check(
        f"""def @main(%x: {T}, %y: {T}) {{
              let %a = exp(%x); let %b = log(%y); %0 = on_device(%a, {THERE}); add(%0, %b) }}""",
        f"""def @main(%x {{{THERE}}}: {T}, %y {{{HERE}}}: {T}, {HERE}) -> {T} {{
              %0 = exp(%x);
              let %a: {T} = on_device(%0, {THERE}, constrain_result=True);
              %1 = log(%y);
              let %b: {T} = on_device(%1, {HERE}, constrain_result=True);
              %2 = device_copy(%a, {COPY_BACK});
              add(%2, %b) }}""",
    )


def test_functions_have_devices_for_each_parameter_and_the_result() -> None:
    check(
        f"""def @main(%x: {T}, %y: {T}) {{
              let %f = fn (%a: {T}, %b: {T}) {{ %0 = exp(%a); %1 = on_device(%0, {THERE}); add(%1, %b) }};
              %f(%x, %y) }}""",
        f"""def @main(%x {{{THERE}}}: {T}, %y {{{HERE}}}: {T}, {HERE}) -> {T} {{
              let %f: fn ({T}, {T}) -> {T} =
                fn (%a {{{THERE}}}: {T}, %b {{{HERE}}}: {T}, {HERE}) -> {T} {{
                  %0 = exp(%a);
                  %1 = on_device(%0, {THERE}, constrain_result=True);
                  %2 = device_copy(%1, {COPY_BACK});
                  add(%2, %b) }};
              %f(%x, %y) }}""",
    )


def test_functions_that_are_chosen_or_handed_on_agree_on_devices() -> None:
    func = parsed(
        f"""def @main(%c: bool, %x: {T}, %y: {T}) {{
              let %f = fn (%a: {T}) {{ %0 = on_device(%y, {THERE}, constrain_result=True); add(%a, %0) }};
              let %g = fn (%b: {T}) {{ negative(%b) }};
              let %h = if (%c) {{ %f }} else {{ %g }};
              %h(%x) }}"""
    )
    assert kinds(PlanDevices(CONFIG)(func)["main"]) == ([1, 12, 12], 12)
    held = parsed(
        f"""def @main(%x: {T}, %y: {T}) {{
              let %f = fn (%a: {T}, %b: {T}) {{ %0 = on_device(%b, {THERE}); subtract(%a, %0) }};
              let %t = (%f, %x); %1 = %t.1; %2 = %t.0; %2(%1, %y) }}"""
    )
    assert kinds(PlanDevices(CONFIG)(held)["main"]) == ([12, 12], 12)


def test_devices_go_through_branches_cells_and_global_functions() -> None:
    a, c, z = relay.var("a"), relay.var("c", "bool"), relay.var("z", shape=(2,))
    body = relay.Let(a, on_device(relay.exp(x), EXT), relay.If(c, a + y, y))
    assert copies(planned(relay.Function([x, y, c], body))) == [(12, 1)]
    inner = relay.Function([z], on_device(z, EXT, constrain_result=True))
    mod = tvm.IRModule.from_expr(relay.Function([x], on_device(inner(x), CPU)))
    with pytest.raises(tvm.error.TVMError, match="one device for a value"):
        PlanDevices(CONFIG)(mod)
    mod = parsed(
        f"""def @f(%a: {T}) -> {T} {{ let %r = ref(%a); %0 = ref_read(%r); exp(%0) }}
            def @main(%x: {T}) -> {T} {{ %0 = @f(%x); on_device(%0, {THERE}) }}"""
    )
    found = PlanDevices(CONFIG)(mod)
    assert kinds(found["f"]) == ([12], 12) and kinds(found["main"]) == ([12], 12)


def test_result_lives_where_it_is_computed() -> None:
    func = planned(relay.Function([x, y], on_device(x + y, EXT)))
    assert copies(func) == [] and kinds(func) == ([12, 12], 12)


def test_field_is_copied_rather_than_its_tuple() -> None:
    func = planned(
        relay.Function(
            [x, y], relay.TupleGetItem(on_device(relay.split(x, 2).astuple(), EXT), 0) + y
        )
    )
    assert copies(func) == [(12, 1)] and kinds(func) == ([12, 1], 1)
    moved = func.body.args[0]
    assert isinstance(moved.args[0].args[0], relay.TupleGetItem)


def test_devices_of_all_values_are_read_back() -> None:
    mod = tvm.IRModule.from_expr(relay.Function([x, y], on_device(relay.exp(x), EXT) + y))
    mod = relay.transform.CapturePostDfsIndexInSpans()(PlanDevices(CONFIG)(mod))
    recover = tvm.get_global_func("relay.transform.RecoverVirtualDeviceMap")
    found = {e.span.line: d.device_type for e, d in recover(mod, mod["main"]).items()}
    kinds_in_order = [kind for _, kind in sorted(found.items())]
    # x, y, exp(x), its hint, the copy, the sum, the function
    assert kinds_in_order == [12, 1, 12, 12, 1, 1, 1]


def test_shapes_and_sizes_live_on_the_host() -> None:
    mod = parsed(
        f"""def @main(%x: Tensor[(?, 2), float32]) {{
              %0 = on_device(%x, {THERE}, constrain_result=True); vm.shape_of(%0, dtype="int64") }}"""
    )
    assert kinds(PlanDevices(CONFIG)(mod)["main"]) == ([12], 1)


def test_functions_say_where_their_ends_live() -> None:
    func = planned(
        function_on_device(relay.Function([x, y], x + on_device(y, EXT)), [CPU, EXT], CPU)
    )
    assert copies(func) == [(12, 1)] and kinds(func) == ([1, 12], 1)
    func = planned(function_on_device(relay.Function([x, y], x + y), [CPU, EXT], CPU))
    assert copies(func) == [(12, 1)]
    identity = function_on_device(relay.Function([x], x), [CPU], CPU)
    with pytest.raises(tvm.error.TVMError, match=r"got device 1\(0\) and device 12\(0\)"):
        planned(function_on_device(relay.Function([y], identity(y)), [EXT], EXT))


def test_an_operand_of_operators_on_two_devices_is_copied() -> None:
    check(
        f"""def @main(%a: {T}, %b: {T}, %c: {T}) {{
              %0 = on_device(add(%a, %b), {HERE});
              %1 = on_device(add(%b, %c), {THERE});
              subtract(%0, %1) }}""",
        f"""def @main(%a {{{HERE}}}: {T}, %b {{{HERE}}}: {T}, %c {{{THERE}}}: {T}, {HERE}) -> {T} {{
              %0 = add(%a, %b);
              %1 = device_copy(%b, {COPY_THERE});
              %2 = add(%1, %c);
              %3 = on_device(%2, {THERE}, constrain_result=True);
              %4 = device_copy(%3, {COPY_BACK});
              subtract(%0, %4) }}""",
    )


def test_copies_between_one_device_are_dropped() -> None:
    func = planned(relay.Function([x], relay.exp(relay.device_copy(x, CPU, CPU))))
    assert copies(func) == []
    kept = planned(relay.Function([x], relay.exp(relay.device_copy(x, EXT, CPU))))
    assert copies(kept) == [(12, 1)]


def test_two_targets_for_one_kind_of_device_are_two_devices() -> None:
    old, new = Target("llvm -mcpu=x86-64"), Target("llvm -mcpu=x86-64-v3")
    config = make_compilation_config(tvm.transform.PassContext.current(), [old, new])
    func = relay.Function([x, y], on_device(relay.exp(x), VirtualDevice(CPU, new)) + y)
    found = PlanDevices(config)(tvm.IRModule.from_expr(func))["main"]
    assert copies(found) == [(1, 1)]
    assert [p.virtual_device_.target for p in found.params] == [new, old]


def test_planned_programs_run() -> None:
    func = planned(relay.Function([x, y], relay.exp(x) + on_device(y, CPU)))
    data = np.array([1, 2], "float32")
    found = relay.create_executor("graph").evaluate(func)(data, data)
    np.testing.assert_allclose(found.numpy(), np.exp(data) + data, rtol=1e-6)


def test_blocks_of_memory_are_described_on_the_host() -> None:
    core = tvm.IRModule()
    core.import_from_std("core.rly")
    core.import_from_std("core.rly")  # it is there already
    assert core.get_global_type_var("Storage").name_hint == "Storage"
    text = """
    #[version = "0.0.5"]
    def @main(%sto: Storage[]) {
      memory.alloc_tensor(%sto, 0, meta[relay.Constant][0],
                          const_shape=meta[relay.Constant][0], assert_shape=[])
    }"""
    table = {"relay.Constant": [relay.const([3, 2], dtype="int64")]}
    mod = relay.parse(text, "from_string", core, table)
    assert tuple(mod["main"].body.checked_type.shape) == (3, 2)
    targets = [tvm.target.Target("llvm", host="llvm"), tvm.target.Target("cuda", host="llvm")]
    with tvm.transform.PassContext(config={"relay.fallback_device_type": 2}) as context:
        config = tvm.target.make_compilation_config(context, targets)
    assert config.host_virtual_device.target.host is None  # the host's own target
    main = relay.transform.PlanDevices(config)(mod)["main"]
    storage, *numbers = main.body.args
    assert isinstance(storage, relay.Var)
    assert {n.attrs.virtual_device.device_type_int for n in numbers} == {1}
    assert main.virtual_device_.device_type_int == 2
