"""Whether a module allocates memory while it runs."""

from __future__ import annotations

import tvm
from tvm import te
from tvm.testing.usmp import is_tvm_backendallocworkspace_calls


def test_lowered_allocations_are_found() -> None:
    n = 100_000
    a = te.placeholder((n,), name="a")
    b = te.compute((n,), lambda i: a[i] + 1)
    c = te.compute((n,), lambda i: b[i] * 2 + b[n - 1 - i])
    mod = tvm.lower(te.create_schedule(c.op), [a, c])
    assert not is_tvm_backendallocworkspace_calls(mod)
    on_cpu = tvm.tir.transform.Apply(lambda f: f.with_attr("target", tvm.target.Target("llvm")))
    assert is_tvm_backendallocworkspace_calls(tvm.tir.transform.LowerTVMBuiltin()(on_cpu(mod)))
