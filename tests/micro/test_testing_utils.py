"""Help for tests of programs in C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import micro, relay
from tvm.micro.testing.utils import (
    create_header_file,
    get_conv2d_relay_module,
    get_target,
    mlf_extract_workspace_size_bytes,
)
from tvm.relay.backend import Executor, Runtime


def test_headers_define_an_array(tmp_path: Path) -> None:
    create_header_file("data", np.array([[1, -2], [3, 4]], "int8"), tmp_path / "include")
    text = (tmp_path / "include" / "data.h").read_text()
    assert "const size_t data_len = 4;" in text and "int8_t data[] = {1, -2, 3, 4};" in text
    create_header_file("rest", np.array([0.5], "float32"), tmp_path)
    assert "float rest[] = {0.5};" in (tmp_path / "rest.h").read_text()
    with pytest.raises(tvm.TVMError, match="requires integers or float32, got complex64"):
        create_header_file("data", np.ones(2, "complex64"), tmp_path)


def test_archives_tell_the_memory_that_models_need(tmp_path: Path) -> None:
    executor = Executor("aot", {"interface-api": "c", "unpacked-api": True})
    lib = relay.build(get_conv2d_relay_module(), "c", executor=executor, runtime=Runtime("crt"))
    micro.export_model_library_format(lib, tmp_path / "model.tar")
    sizes = lib.function_metadata["__tvm_main__"].workspace_sizes.values()
    assert mlf_extract_workspace_size_bytes(tmp_path / "model.tar") == sum(sizes)


def test_targets_of_boards() -> None:
    assert str(get_target("crt").kind) == "c" and get_target("crt").model == "host"
    with pytest.raises(ValueError, match="`board` type is required for zephyr platform"):
        get_target("zephyr")
    with pytest.raises(NotImplementedError, match="requires the boards of the platform 'zephyr'"):
        get_target("zephyr", "qemu_x86")
