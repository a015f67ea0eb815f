"""Tests of passes: a program before, and what the pass makes of it.

class TestRemovesBranch(tvm.testing.CompareBeforeAfter):
    transform = tvm.tir.transform.Simplify()

    def before(A: T.Buffer(16, "int32")):
        for i in range(16):
            if i < 16:
                A[i] = i

    def expected(A: T.Buffer(16, "int32")):
        for i in range(16):
            A[i] = i
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tvm.ir import assert_structural_equal
from tvm.ir.module import IRModule
from tvm.script.parser.ir.entry import module_of_class
from tvm.script.parser.tir.entry import prim_func_of
from tvm.tir.analysis import verify_well_formed
from tvm.tir.function import PrimFunc


class CompareBeforeAfter:
    """The base of such tests.

    ``before`` and ``expected`` are functions of TVMScript, classes of them, functions or modules, or
    methods that return one of those (with ``self``, and fixtures). ``expected`` may be an exception
    instead, or a function of what comes out. Both may be written with a capital letter. ``transform`` is a pass, or a method that returns one.
    """

    check_well_formed = True

    def __init_subclass__(cls) -> None:
        frame = sys._getframe(1)
        for name, read in (("before", _program), ("expected", _program), ("transform", _pass)):
            for spelled in (name, name.capitalize()):
                if spelled in vars(cls):
                    setattr(cls, name, _as_fixture(vars(cls)[spelled], read, frame))

    @classmethod
    def _normalize_before(cls, func: Any) -> Any:
        """The fixture of a program, for test classes that ask other questions than ``test_compare``."""
        return _as_fixture(func, _program, sys._getframe(1))

    def test_compare(self, before: Any, expected: Any, transform: Any) -> None:
        """What the pass makes of the program is what is expected."""
        import pytest

        if self.check_well_formed:
            verify_well_formed(before)
        if inspect.isclass(expected) and issubclass(expected, Exception):
            with pytest.raises(expected):
                transform(before)
            return
        after = transform(before)
        if not isinstance(expected, (PrimFunc, IRModule)):
            assert expected(after), f"the result is not as expected:\n{after}"
            return
        if self.check_well_formed:
            verify_well_formed(after)
        if isinstance(after, PrimFunc) and isinstance(expected, PrimFunc):
            # functions are compared, not their names
            after, expected = [f.with_attr("global_symbol", "main") for f in (after, expected)]
        assert_structural_equal(after, expected)


def _as_fixture(value: Any, read: Callable[[Any, FrameType], Any], frame: FrameType) -> Any:
    import pytest

    if hasattr(value, "_pytestfixturefunction") or hasattr(value, "_fixture_function"):
        return value
    if inspect.isfunction(value) and "self" in inspect.signature(value).parameters:
        return pytest.fixture(_of_method(value) if read is _pass else value)
    found = read(value, frame)
    return pytest.fixture(lambda self: found)


def _of_method(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method, with its pass made to take functions too."""

    def transform(*args: Any, **fixtures: Any) -> Any:
        return _pass(method(*args, **fixtures), None)

    transform.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return transform


def _program(value: Any, frame: FrameType) -> Any:
    if isinstance(value, (PrimFunc, IRModule)):
        return value
    if inspect.isclass(value):
        if issubclass(value, Exception):
            return value
        return module_of_class(value, frame, False, inspect.getsourcelines(value)[1])
    return prim_func_of(value, frame, False)


def _pass(value: Callable[[IRModule], IRModule], frame: FrameType | None) -> Any:
    def apply(program: Any) -> Any:
        if isinstance(program, PrimFunc):
            return value(IRModule({"main": program}))["main"]
        return value(program)

    return apply
