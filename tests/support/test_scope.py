import os
import signal
import sys
import threading
import time

import pytest

from tvm.support import Scoped, UniqueNames, compiling, deep, deep_recursion
from tvm.support import scope as scope_module


def test_the_innermost_value_is_current() -> None:
    scoped: Scoped[int] = Scoped("test")
    assert scoped.current() is None
    with scoped.scope(1):
        with scoped.scope(2):
            assert scoped.current() == 2
        assert scoped.current() == 1
    assert scoped.current() is None


def test_recursion_limit_is_restored() -> None:
    before = sys.getrecursionlimit()
    assert deep(sys.getrecursionlimit)() > 500_000
    with deep_recursion(), compiling():
        pass
    assert sys.getrecursionlimit() == before


def test_deep_calls_go_deep_and_keep_context_and_errors() -> None:
    scoped: Scoped[int] = Scoped("deep")

    def depth(count: int) -> int:
        if count < 0:
            raise KeyError(count)
        return (scoped.current() or 0) if count == 0 else depth(count - 1)

    with scoped.scope(7):
        assert deep(depth)(100_000) == 7
    with pytest.raises(KeyError):
        deep(depth)(-1)


def test_names_are_unique_and_stable() -> None:
    names = UniqueNames()
    assert [names.fresh(n) for n in ("x", "x", "x_1", "y", "x")] == [
        "x",
        "x_1",
        "x_1_1",
        "y",
        "x_2",
    ]


def test_ctrl_c_ends_a_call_on_a_large_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope_module, "FRAMES_ON_C_STACK", True)
    ended = []

    @deep
    def busy() -> None:
        threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGINT]).start()
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        busy()
    assert ended
