"""IRModule.replace_global_vars: other names of functions, in all languages at once."""

from __future__ import annotations

import pytest

from tvm import relay, tir
from tvm.ir import GlobalVar, IRModule
from tvm.relay import parse
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T

VALUE = "fn (%x: Tensor[(1), float32]) -> Tensor[(1), float32]"


def relay_module(first: str, second: str) -> IRModule:
    text = f'#[version = "0.0.5"]\ndef @{first}{VALUE[3:]} {{ @{second}(%x) }}\n'
    return parse(text + f"def @{second}{VALUE[3:]} {{ add(%x, %x) }}")


def test_calls_follow_the_function() -> None:
    after = relay_module("main", "f").replace_global_vars({"f": "g"})
    relay_after = relay.transform.InferType()(after)
    assert relay_after.astext() == relay.transform.InferType()(relay_module("main", "g")).astext()


def test_two_functions_may_swap_names() -> None:
    mod = relay_module("f", "g")
    after = mod.replace_global_vars({"f": "g", "g": "f"})
    assert after["g"].body.op is after.get_global_var("f")
    assert after["f"].body.op.name == "add"


def test_nothing_to_replace_is_the_same_module() -> None:
    mod = relay_module("main", "f")
    assert mod.replace_global_vars({}) is mod


def test_loops_relax_and_symbols_follow() -> None:
    @I.ir_module
    class Before:
        @R.function
        def main(a: R.Tensor([4], "float32")) -> R.Tensor([4], "float32"):
            return R.call_tir(Before.outer, a, out_sinfo=R.Tensor([4], "float32"))

        @T.prim_func
        def outer(A: T.Buffer(4, "float32"), B: T.Buffer(4, "float32")):
            Before.inner(A.data, B.data)

        @T.prim_func(private=True)
        def inner(a: T.handle("float32"), b: T.handle("float32")):
            T.evaluate(0)

    after = Before.replace_global_vars({"main": "start", "outer": "first", "inner": "second"})
    first, second = after.get_global_var("first"), after.get_global_var("second")
    assert after["first"].attrs["global_symbol"] == "first"
    assert "global_symbol" not in after["second"].attrs
    assert after["first"].body.value.op is second
    assert after["start"].body.blocks[0].bindings[0].value.args[0] is first
    start = after.get_global_var("start")
    assert start.struct_info is Before.get_global_var("main").struct_info


def test_names_stay_unique() -> None:
    mod = relay_module("main", "f")
    with pytest.raises(ValueError, match=r"requires a name for each function, got 'main' for"):
        mod.replace_global_vars({"f": "main"})
    with pytest.raises(ValueError, match="no function is called 'g'"):
        mod.replace_global_vars({"g": "h"})


def test_functions_of_other_modules_are_renamed_where_they_are_called() -> None:
    other, new = GlobalVar("other"), GlobalVar("new")
    mod = IRModule({"main": tir.PrimFunc([], tir.Evaluate(tir.Call("int32", other, [])))})
    assert mod.replace_global_vars({other: new})["main"].body.value.op is new
