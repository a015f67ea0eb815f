"""Programs that te, its schedules, the build and compiled functions refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.runtime import Module, NDArray, PackedFunc

from .messages import assert_refused

A = te.placeholder((8, 16), name="A")
K = te.reduce_axis((0, 16), name="k")
B = te.compute((8,), lambda i: te.sum(A[i, K], axis=K), name="B")


def schedule() -> te.Schedule:
    return te.create_schedule(B.op)


TENSORS: dict[str, tuple[Callable[[], Any], str]] = {
    "negative extent": (
        lambda: te.placeholder((-1,), name="X"),
        "X requires extents of at least 0 as its shape, got -1",
    ),
    "half an extent": (
        lambda: te.placeholder((1.5,), name="X"),
        "X requires integers as its shape, got T.float32(1.5) of float32",
    ),
    "no shape": (
        lambda: te.placeholder(None, name="X"),
        "X requires integers as its shape, got None",
    ),
    "text as element": (
        lambda: te.compute((8,), lambda i: "text", name="X"),
        'compute X requires numbers as elements, got "text"',
    ),
    "fractional index": (
        lambda: te.compute((8,), lambda i: A[i, 0.5]),
        "tensor A requires integers as indices, got T.float32(0.5) of float32",
    ),
    "reduction over rows": (
        lambda: te.compute((8,), lambda i: te.sum(A[i, 0], axis=B.op.axis[0])),
        "a reduction requires axes that te.reduce_axis made, got "
        'T.iter_var(i, T.Range(0, 8), "DataPar", "")',
    ),
    "listed": (lambda: list(A), "tensor A is symbolic: its elements cannot be listed"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors(case: str) -> None:
    program, text = TENSORS[case]
    assert_refused(program, text)


SCHEDULES: dict[str, tuple[Callable[[te.Schedule], Any], str]] = {
    "no factor": (
        lambda s: s[B].split(B.op.axis[0]),
        "split requires either factor or nparts, got neither",
    ),
    "factor of 0": (
        lambda s: s[B].split(B.op.axis[0], 0),
        "split requires a positive factor, got 0",
    ),
    "half a factor": (
        lambda s: s[B].split(B.op.axis[0], 2.5),
        "split requires an integer as its factor, got 2.5",
    ),
    "text as factor": (
        lambda s: s[B].split(B.op.axis[0], "2"),
        "split requires an integer as its factor, got '2'",
    ),
    "no axis": (
        lambda s: s[B].vectorize(None),
        "vectorize requires an axis of stage B, got a value of NoneType",
    ),
    "parallel reduction": (
        lambda s: s[B].parallel(K),
        "parallel requires a loop whose iterations are independent, got k, "
        "which comes from a reduction",
    ),
    "unnamed function": (
        lambda s: tvm.build(s, [A, B], "llvm", name=""),
        "a function needs a text that is not empty as its name, got ''",
    ),
    "number as name": (
        lambda s: tvm.build(s, [A, B], "llvm", name=3),
        "a function needs a text that is not empty as its name, got 3",
    ),
    "unknown target": (
        lambda s: tvm.build(s, [A, B], "lvm"),
        "Target requires a known kind, got 'lvm'",
    ),
}


@pytest.mark.parametrize("case", SCHEDULES)
def test_schedules(case: str) -> None:
    program, text = SCHEDULES[case]
    assert_refused(lambda: program(schedule()), text)


@pytest.mark.parametrize("kind", [Module, NDArray, PackedFunc])
def test_native_objects_are_not_made_by_hand(kind: type) -> None:
    for program in (kind, lambda: kind.__new__(kind)):
        text = f"{kind.__name__} has no constructor: the runtime makes its objects"
        assert_refused(program, text, kind=TypeError)


def test_arguments_of_compiled_functions() -> None:
    rows = tvm.build(schedule(), [A, B], "llvm", name="rows")
    a = tvm.nd.array(np.zeros((8, 16), "float32"))
    b = tvm.nd.array(np.zeros(8, "float32"))
    assert_refused(lambda: rows(a), "rows: needs 2 arguments, got 1")
    assert_refused(lambda: rows(b, b), "rows: argument 0 (buffer A) needs 2 dimensions, got 1")
    assert_refused(
        lambda: rows(np.zeros((8, 16), "float32"), b),
        "rows: argument 0 (buffer A) needs to be a tensor or a pointer, got an object",
    )
    assert_refused(lambda: rows["other"], "the module has no function 'other'")


def test_a_call_of_c_code_that_is_nowhere() -> None:
    c = te.compute((8,), lambda i: tvm.tir.call_pure_extern("float32", "no_such_code", A[i, 0]))
    assert_refused(
        lambda: tvm.build(te.create_schedule(c.op), [A, c], "llvm"),
        "compiled code calls no_such_code, which no loaded library defines",
    )
