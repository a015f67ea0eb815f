"""Arguments of wrong kinds, anywhere at the surface: who wanted what."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tvm
from tvm import TVMError, relay, te
from tvm.relay.backend import Executor
from tvm.runtime.vm import VirtualMachine

X = relay.var("x", shape=(2, 3))
MOD = tvm.IRModule.from_expr(relay.Function([X], relay.exp(X)))
A = te.placeholder((4,), name="A")

WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: relay.save_param_dict(3), "parameters are a dictionary by name, got int"),
    (lambda: relay.optimize(MOD, "llvm", 3), "parameters are a dictionary by name, got int"),
    (lambda: relay.build(MOD, "llvm", executor="aot"), r'requires a relay.backend.Executor such as'),
    (lambda: Executor(["aot"]), "is not defined"),
    (lambda: Executor("aot", [1]), "requires a dictionary of options"),
    (lambda: tvm.transform.PassContext(opt_level="x"), "requires a number for opt_level"),
    (lambda: tvm.transform.PassContext(disabled_pass=3), "requires a list for disabled_pass"),
    (lambda: tvm.transform.PassContext(disabled_pass=[3]), "requires names of passes"),
    (lambda: tvm.transform.PassContext(config={1: 2}), "requires a known config key, got 1"),
    (lambda: VirtualMachine(relay.vm.compile(MOD, "llvm"), 3), "needs a Device, got int"),
    (lambda: te.gradient(A, 3), "gradient requires tensors"),
    (lambda: te.extern((2,), 3, lambda i, o: None), "a list of tensors"),
    (lambda: te.extern((2,), [A], 3), "expect fcompute to be a function"),
    (lambda: te.compute(tvm.cpu(), lambda i: i), "requires integers as its shape"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), WRONG, ids=[message for _, message in WRONG])
def test_wrong_kinds_are_rejected_in_plain_words(call: Callable[[], object], message: str) -> None:
    with pytest.raises((TVMError, TypeError, ValueError), match=message):
        call()
