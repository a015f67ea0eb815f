from __future__ import annotations

import pytest

import tvm
from tvm import te
from tvm.target.cpu import named_processors
from tvm.target.kind import TargetError
from tvm.target.llvm_tables import known_processors


def test_llvm_tells_its_processors() -> None:
    assert "cortex-a72" in known_processors("aarch64-unknown-linux-gnu")


def test_unknown_processor_is_rejected() -> None:
    a = te.placeholder((4,), name="a")
    s = te.create_schedule(te.compute((4,), lambda i: a[i] + 1, name="b").op)
    target = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=skylakee"
    with pytest.raises(TargetError, match=r"(?s)got 'skylakee'.*'skylake'"):
        tvm.build(s, [a, s.stages[-1].op.output(0)], target=target)


def test_processors_of_every_x86_generation_are_known() -> None:
    unknown = named_processors() - set(known_processors("x86_64-unknown-linux-gnu"))
    assert not unknown
