"""Programs that te, its schedules, the build and compiled functions reject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.runtime import Module, NDArray, PackedFunc

from .messages import assert_rejected

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
    "a number as name": (lambda: te.var(3), "var requires a text as its name, got 3"),
    "a constant too large": (
        lambda: te.const(300, "int8"),
        "const requires a number in [-128, 127] for int8, got 300",
    ),
    "a constant too large for the loop level": (
        lambda: tvm.tir.const(-1, "uint8"),
        "const requires a number in [0, 255] for uint8, got -1",
    ),
    "an index behind the end": (
        lambda: te.compute((8,), lambda i: A[i, 16]),
        "tensor A of shape [8, 16] requires an index from 0 to below 16 in dimension 1, got 16",
    ),
    "an index before the begin": (
        lambda: te.compute((8,), lambda i: A[-1, i]),
        "tensor A of shape [8, 16] requires an index from 0 to below 8 in dimension 0, got -1",
    ),
    "a number to choose by": (
        lambda: tvm.tir.Select(te.var("n"), 1, 2),
        "Select requires a condition of bool, got int32",
    ),
    "lanes to choose by": (
        lambda: tvm.tir.Select(tvm.tir.Broadcast(te.var("n") > 1, 4), 1, 2),
        "Select requires a condition of one lane or of 1, got uint1x4",
    ),
    "a text as constant": (lambda: te.const("a"), "const requires a number, got 'a'"),
    "a number as domain": (
        lambda: te.reduce_axis(3),
        "reduce_axis requires (begin, end), got 3",
    ),
    "a domain that ends before it begins": (
        lambda: te.reduce_axis((5, 0)),
        "reduce_axis requires an end that is not before its begin, got (5, 0)",
    ),
    "threads of no kind": (
        lambda: te.thread_axis("threadIdx.w"),
        'thread_axis requires a known tag, got "threadIdx.w"',
    ),
    "a tag that is no text": (
        lambda: te.compute((8,), lambda i: A[i, 0], name="X", tag=3),
        "compute X requires a text as its tag, got 3",
    ),
    "no function": (
        lambda: te.compute((8,), 3, name="X"),
        "compute X requires a function of the indices, got a value of int",
    ),
    "a number as condition": (
        lambda: te.sum(A[0, K], axis=K, where=A[0, K]),
        "a reduction requires a condition as where, got float32",
    ),
    "a tensor as inputs": (
        lambda: te.extern((8,), A, lambda i, o: None, name="X"),
        "extern X: expect inputs to be a list of tensors, got tensor A",
    ),
    "listed": (lambda: list(A), "tensor A is symbolic: its elements cannot be listed"),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors(case: str) -> None:
    program, text = TENSORS[case]
    assert_rejected(program, text)


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
    "vectorized reduction": (
        lambda s: s[B].vectorize(K),
        "vectorize requires a loop whose iterations are independent, got k, "
        "which comes from a reduction",
    ),
    "unknown scope": (
        lambda s: s.cache_read(A, "globl", [B]),
        'cache_read requires a known storage scope, got "globl"',
    ),
    "number as scope": (
        lambda s: s.cache_write(B, 3),
        "cache_write requires the name of a storage scope, got a value of int",
    ),
    "misspelt pragma": (
        lambda s: s[B].pragma(B.op.axis[0], "auto_unrol_max_step", 4),
        'pragma requires a known name, got "auto_unrol_max_step"',
    ),
    "pragma of a wrong kind": (
        lambda s: s[B].pragma(B.op.axis[0], "auto_unroll_max_step", "four"),
        "pragma auto_unroll_max_step requires an integer, got 'four'",
    ),
    "bound twice": (
        lambda s: _bound(s).bind(B.op.axis[0], te.thread_axis("threadIdx.y")),
        "bind requires a loop, got i, which is bound to threadIdx.x",
    ),
    "vectorized threads": (
        lambda s: _bound(s).vectorize(B.op.axis[0]),
        "vectorize requires a loop, got i, which is bound to threadIdx.x",
    ),
    "threads that are taken": (
        lambda s: _split_and_bound(s),
        "bind requires threads that no loop of stage B has yet, got threadIdx.x, "
        "which i.outer is bound to",
    ),
    "nobody reads the copy": (
        lambda s: s.cache_read(A, "global", []),
        "cache_read requires at least one reader of A, got none",
    ),
    "no condition": (
        lambda s: s[B].set_store_predicate(3),
        "set_store_predicate requires a condition, got 3 of int32",
    ),
    "aligned reduction": (
        lambda s: s[B].storage_align(K, 2, 0),
        "storage_align requires an axis of operation B, got k",
    ),
    "half an alignment": (
        lambda s: s[B].storage_align(B.op.axis[0], 2.5, 0),
        "storage_align requires integers as factor and offset, got 2.5",
    ),
    "prefetch of half a step": (
        lambda s: s[B].prefetch(A, B.op.axis[0], 0.5),
        "prefetch requires an integer as its offset, got 0.5",
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


def _bound(s: te.Schedule) -> te.Stage:
    s[B].bind(B.op.axis[0], te.thread_axis("threadIdx.x"))
    return s[B]


def _split_and_bound(s: te.Schedule) -> None:
    thread = te.thread_axis("threadIdx.x")
    for loop in s[B].split(B.op.axis[0], 4):
        s[B].bind(loop, thread)


@pytest.mark.parametrize("case", SCHEDULES)
def test_schedules(case: str) -> None:
    program, text = SCHEDULES[case]
    assert_rejected(lambda: program(schedule()), text)


@pytest.mark.parametrize("kind", [Module, NDArray, PackedFunc])
def test_native_objects_are_not_made_by_hand(kind: type) -> None:
    for program in (kind, lambda: kind.__new__(kind)):
        text = f"{kind.__name__} has no constructor: the runtime makes its objects"
        assert_rejected(program, text, kind=TypeError)


def test_arguments_of_compiled_functions() -> None:
    rows = tvm.build(schedule(), [A, B], "llvm", name="rows")
    a = tvm.nd.array(np.zeros((8, 16), "float32"))
    b = tvm.nd.array(np.zeros(8, "float32"))
    assert_rejected(lambda: rows(a), "rows: needs 2 arguments, got 1")
    assert_rejected(lambda: rows(b, b), "rows: argument 0 (buffer A) needs 2 dimensions, got 1")
    assert_rejected(
        lambda: rows([0.0] * 8, b),
        "rows: argument 0 (buffer A) needs to be a tensor or a pointer, got an object",
    )
    assert_rejected(lambda: rows["other"], "the module has no function 'other'")


def test_a_call_of_c_code_that_is_nowhere() -> None:
    c = te.compute((8,), lambda i: tvm.tir.call_pure_extern("float32", "no_such_code", A[i, 0]))
    built = tvm.build(te.create_schedule(c.op), [A, c], "llvm")  # which can be exported
    a, b = tvm.nd.array(np.zeros((8, 16), "float32")), tvm.nd.array(np.zeros(8, "float32"))
    assert_rejected(
        lambda: built(a, b),
        "the function '__tvm_main__' cannot be called: compiled code calls no_such_code, which no "
        "loaded library defines; load the library with ctypes.CDLL(path, ctypes.RTLD_GLOBAL) before "
        "tvm.build",
    )
