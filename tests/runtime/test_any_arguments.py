"""Functions called with anything raise, and neither end nor hang the process."""

from __future__ import annotations

import os

import numpy as np
import pytest

import tvm
from tests.runtime import stress


def test_no_function_ends_or_hangs_the_process_whatever_it_is_given() -> None:
    assert stress.crashes(seed=7, rounds=10) == {}


def test_a_function_of_modules_rejects_none() -> None:
    for name in ("ModuleGetTypeKey", "ModuleGetFormat", "ModulePackImports", "ModuleImportsSize"):
        with pytest.raises(TypeError, match="expected Module, got None"):
            tvm.get_global_func(f"runtime.{name}")(None)
    with pytest.raises(TypeError, match="expected Report, got None"):
        tvm.get_global_func("runtime.profiling.AsCSV")(None)


def test_sorting_checks_the_shapes_of_what_it_writes() -> None:
    sort = tvm.get_global_func("tvm.contrib.sort.argsort")
    data = tvm.nd.array(np.array([[3, 1, 2]], "float32"))
    with pytest.raises(
        ValueError, match=r"argsort requires compact outputs .* \(1, 3\).* got \(2,\)"
    ):
        sort(data, tvm.nd.empty((2,), "int32"), 1, True)
    with pytest.raises(TypeError, match="sort gives values as float32, got int32"):
        tvm.get_global_func("tvm.contrib.sort.sort")(data, tvm.nd.empty((1, 3), "int32"), 1, True)
    with pytest.raises(ValueError, match="requires a length for each of 1 rows"):
        tvm.get_global_func("tvm.contrib.sort.argsort_nms")(
            data, tvm.nd.array(np.zeros(2, "int32")), tvm.nd.empty((1, 3), "int32"), 1, True
        )


def test_a_loader_of_modules_takes_the_stream_of_a_library_only() -> None:
    load = tvm.get_global_func("runtime.module.loadbinary_GraphExecutorFactory")
    for stream in (None, tvm.nd.empty((4,))):
        with pytest.raises(TypeError, match="loaded from a library only"):
            load(stream)


def test_a_session_is_served_on_sockets_only() -> None:
    reader, writer = os.pipe()
    try:
        for descriptor in (reader, -1, 1 << 20):
            with pytest.raises(
                tvm.TVMError, match=f"requires a socket, got descriptor {descriptor}"
            ):
                tvm.get_global_func("rpc.ServerLoop")(descriptor)
    finally:
        os.close(reader)
        os.close(writer)
