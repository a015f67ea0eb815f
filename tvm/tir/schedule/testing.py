"""Checks for tests of schedules: traces that replay to the same program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tvm
from tvm import script, tir
from tvm.error import RuntimeValueError
from tvm.ir.module import IRModule
from tvm.ir.structural import assert_structural_equal
from tvm.tir.function import PrimFunc

from .schedule import Schedule
from .trace import Trace


def assert_structural_equal_ignore_global_symbol(
    func1: PrimFunc, func2: PrimFunc, *args: Any, **kwargs: Any
) -> None:
    """Assert that two functions are equal but for their names.

    Parameters
    ----------
    func1, func2 : PrimFunc
    args, kwargs
        As of ``tvm.ir.assert_structural_equal``.
    """
    lhs, rhs = [func.with_attr("global_symbol", "main") for func in (func1, func2)]
    assert_structural_equal(lhs, rhs, *args, **kwargs)


def verify_trace_roundtrip(
    sch: Schedule,
    mod: PrimFunc | IRModule,
    *,
    debug_mask: str | int = "all",
    text_format: str | Sequence[str] = ("python", "json"),
) -> Schedule:
    """Assert that a schedule's trace, written and read again, gives the same program.

    Parameters
    ----------
    sch : Schedule
        The schedule.
    mod : PrimFunc or IRModule
        The program it began with.
    debug_mask : str or int
        Of the schedules that the trace is replayed on.
    text_format : str or list of str
        ``"python"``, ``"json"`` or both.

    Returns
    -------
    Schedule
        The schedule of the last replay.
    """
    formats = [text_format] if isinstance(text_format, str) else list(text_format)
    trace = sch.trace
    assert trace is not None, "a schedule without a trace cannot be replayed"
    assert formats, "some format is to be verified"
    for form in formats:
        again = Schedule(mod, debug_mask=debug_mask)
        if form == "json":
            Trace.apply_json_to_schedule(trace.as_json(), again)
        elif form == "python":
            names = {**vars(tir), "tvm": tvm, "T": script.tir}
            exec("\n".join(trace.as_python()), names, {"sch": again})
        else:
            raise RuntimeValueError(f"text_format requires 'python' or 'json', got {form!r}")
        assert_structural_equal(again.mod, sch.mod)
        assert again.trace is not None
        assert_same_steps(again.trace, trace)
    return again


def assert_same_steps(lhs: Trace, rhs: Trace) -> None:
    """Assert that two traces read the same."""
    assert str(lhs) == str(rhs), f"{lhs}\n\nis not\n\n{rhs}"
