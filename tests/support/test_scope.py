import sys

from tvm.support import Scoped, UniqueNames, compiling, deep_recursion


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
    with deep_recursion(), compiling():
        assert sys.getrecursionlimit() > 500_000
    assert sys.getrecursionlimit() == before


def test_names_are_unique_and_stable() -> None:
    names = UniqueNames()
    assert [names.fresh(n) for n in ("x", "x", "x_1", "y", "x")] == [
        "x",
        "x_1",
        "x_1_1",
        "y",
        "x_2",
    ]
