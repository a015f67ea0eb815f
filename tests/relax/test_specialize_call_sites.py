"""Loop programs for the tensors that they are called with."""

from __future__ import annotations

import pytest

import tvm
from tvm import relax
from tvm.relax import transform
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

TEXTURE = "global.texture-nhwc"


@T.prim_func(private=True)
def double(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("double"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)


def _module(lengths: list[int], scopes: list[str]) -> tvm.IRModule:
    """Calls of `double`, a tensor of a length in a scope each; results are in global memory."""
    devices = {s: I.vdevice({"kind": "opencl"}, 0, s) for s in dict.fromkeys(["global", *scopes])}
    infos = [
        relax.TensorStructInfo((n,), "float32", devices[s])
        for n, s in zip(lengths, scopes, strict=True)
    ]
    builder = relax.BlockBuilder()
    gvar = builder.add_func(double, "double")
    params = [relax.Var(f"x{i}", info) for i, info in enumerate(infos)]
    with builder.function("main", params):
        for param, n in zip(params, lengths, strict=True):
            info = relax.TensorStructInfo((n,), "float32", devices["global"])
            last = builder.emit(relax.call_tir(gvar, (param,), info))
        builder.emit_func_output(last)
    return builder.get()


def _callees(mod: tvm.IRModule) -> list[tvm.tir.PrimFunc]:
    return [mod[b.value.args[0]] for b in mod["main"].body.blocks[0].bindings]


@pytest.mark.parametrize("scope", ["global", TEXTURE])
def test_buffers_lie_where_the_tensors_do(scope: str) -> None:
    after = transform.SpecializePrimFuncBasedOnCallSite()(_module([4], [scope]))
    (func,) = _callees(after)
    source, result = [func.buffer_map[param] for param in func.params]
    assert (source.scope(), result.scope()) == (scope, "global")
    assert [int(dim) for dim in (*source.shape, *result.shape)] == [4, 4]
    assert next(iter(after.functions_items()))[0].name_hint == "double"


def test_calls_with_other_tensors_are_of_other_programs() -> None:
    mod = _module([4, 4, 3, 4], [TEXTURE, "global", TEXTURE, TEXTURE])
    after = transform.SpecializePrimFuncBasedOnCallSite()(mod)
    first, *others, last = _callees(after)
    assert first is last
    assert all(first is not other for other in others)
    assert len(after.functions) == 4


def test_nothing_known_changes_nothing() -> None:
    n = tvm.tir.Var("m", "int64")
    builder = relax.BlockBuilder()
    gvar = builder.add_func(double, "double")
    x = relax.Var("x", R.Tensor((n,), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.call_tir(gvar, (x,), x.struct_info)))
    mod = builder.get()
    assert transform.SpecializePrimFuncBasedOnCallSite()(mod) is mod
