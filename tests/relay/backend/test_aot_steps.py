"""The steps of a build for the AOT executor, one by one."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay, tir
from tvm.ir import memory_pools
from tvm.relay.backend import Executor
from tvm.relay.backend.aot import AOTLowerMain, CreateExecutorMetadata, CreateFunctionMetadata
from tvm.relay.backend.utils import CallType
from tvm.relay.op.call import call_lowered
from tvm.tir import stmt_functor


def module() -> tvm.IRModule:
    x, y, a = [relay.var(n, shape=(5, 7)) for n in "xya"]
    gvar = relay.GlobalVar("test_fused_add")
    kernel = relay.Function([x, y], x + y).with_attr("Primitive", 1)
    weight = relay.const(tvm.nd.empty((5, 7)))
    body = call_lowered(gvar, (call_lowered(gvar, (a, weight)), a))
    main = relay.Function([a], body).with_attr("output_tensor_names", ["total"])
    return tvm.IRModule({gvar: kernel, "main": main})


def lowered(call_type: CallType) -> tvm.IRModule:
    context = tvm.transform.PassContext.current()
    config = tvm.target.make_compilation_config(context, tvm.target.Target("llvm"))
    return AOTLowerMain("test_mod", config, call_type)(module())


@pytest.mark.parametrize(
    ("call_type", "op"),
    [
        (CallType.Packed, "tir.tvm_call_packed"),
        (CallType.CPacked, "tir.tvm_call_cpacked"),
        (CallType.Unpacked, "tir.call_extern"),
    ],
)
def test_the_model_calls_its_functions_as_wanted(call_type: CallType, op: str) -> None:
    mod = lowered(call_type)
    assert sorted([g.name_hint for g in mod.get_global_vars()]) == [
        "__tvm_main__",
        "test_fused_add",
    ]
    main = mod["__tvm_main__"]
    assert main.attrs["global_symbol"] == "test_mod___tvm_main__"
    names = []
    stmt_functor.post_order_visit(
        main.body,
        lambda n: names.append(n.op.name) if isinstance(n, tir.Call) and n.op.name == op else None,
    )
    assert names == [op, op]
    assert [v.name for v in main.attrs["input_vars"]] == ["a"]
    assert main.attrs["runner_function"] and list(main.attrs["devices"]) == []


def test_facts_about_functions_and_the_model() -> None:
    mod = lowered(CallType.CPacked)
    facts = CreateFunctionMetadata(mod, 16, 1)
    info = facts["__tvm_main__"]
    (target,) = info.workspace_sizes
    # one tensor between the two calls, 140 bytes
    assert info.workspace_sizes[target] == 144 and info.constant_sizes[target] == 140
    assert info.io_sizes[target] == 280
    metadata = CreateExecutorMetadata(mod, "test_mod", Executor("aot"), 16, 1)
    assert (metadata.inputs, metadata.outputs) == (["a"], ["total"])
    assert metadata.input_tensor_types == [relay.TensorType((5, 7), "float32")]
    assert (metadata.workspace_alignment, metadata.constant_alignment) == (16, 1)
    assert (metadata.mod_name, metadata.interface_api, metadata.devices) == (
        "test_mod",
        "packed",
        [],
    )


def test_what_cannot_be_lowered_is_rejected() -> None:
    config = tvm.target.make_compilation_config(None, tvm.target.Target("llvm"))
    x = relay.var("x", shape=(2,))
    lower = AOTLowerMain("m", config, CallType.CPacked)
    with pytest.raises(tvm.TVMError, match="graph and AOT executors cannot run a call of Op"):
        lower(tvm.IRModule.from_expr(relay.exp(x)))
    with pytest.raises(tvm.TVMError, match="requires a function main"):
        lower(tvm.IRModule())
    with pytest.raises(tvm.TVMError, match="requires __tvm_main__"):
        CreateExecutorMetadata(module(), "m", Executor("aot"), 8, 8)
    with pytest.raises(TypeError, match="requires a GlobalVar, got Var"):
        call_lowered(x, (x,))


def test_calls_of_lowered_functions_have_a_text() -> None:
    mod = relay.transform.InferType()(module())
    again = relay.fromtext(mod.astext())
    tvm.ir.assert_structural_equal(mod, relay.transform.InferType()(again))


def test_devices_are_opened_around_calls_that_need_them() -> None:
    mod = module()
    (kernel,) = [g for g in mod.get_global_vars() if g.name_hint == "test_fused_add"]
    config = tvm.target.make_compilation_config(None, tvm.target.Target("llvm"))
    lower = AOTLowerMain("test_mod", config, CallType.CPacked)
    main = lower(mod.with_attr("device_contexts", {kernel: "my_npu"}))["__tvm_main__"]
    assert list(main.attrs["devices"]) == ["my_npu"]
    assert main.params[-1].name == "device_context_my_npu" and len(main.buffer_map) == 2
    calls = []
    stmt_functor.post_order_visit(
        main.body,
        lambda n: calls.append(n) if isinstance(n, tir.Call) and len(n.args) > 1 else None,
    )
    hooks = [c.args[0].value for c in calls if c.op.name == "tir.call_extern"]
    around = ["TVMDeviceMyNpuOpen", "TVMDeviceMyNpuClose"]
    assert hooks == ["TVMDeviceMyNpuActivate", *around, *around, "TVMDeviceMyNpuDeactivate"]
    kernels = [c for c in calls if c.op.name == "tir.tvm_call_cpacked"]
    assert all(c.args[-1].same_as(main.params[-1]) for c in kernels)


def test_pools_count_in_what_the_model_needs() -> None:
    mod = lowered(CallType.CPacked)
    target = mod["__tvm_main__"].attrs["target"]
    array = tvm.nd.empty((1,))
    flash = memory_pools.ConstantPoolInfo(
        "flash", [target], [memory_pools.ConstantInfo("c", 0, array)]
    )
    pools = [
        memory_pools.AllocatedPoolInfo(flash, 512),
        memory_pools.AllocatedPoolInfo(memory_pools.WorkspacePoolInfo("sram", [target]), 256),
    ]
    info = CreateFunctionMetadata(mod.with_attr("pool_args", pools), 16, 1)["__tvm_main__"]
    assert info.workspace_sizes.items()[0][1] == 144 + 256
    assert info.constant_sizes.items()[0][1] == 140 + 512
