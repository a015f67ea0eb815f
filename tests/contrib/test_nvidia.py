"""What is known of NVIDIA's devices and libraries on a machine without them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tvm
from tvm.contrib import cudnn, nnpack, nvcc
from tvm.error import TVMError


def test_compute_capabilities_say_what_devices_can_do() -> None:
    versions = ["5.2", "5.3", "6.0", "6.1", "7.0", "8.0", "10.0"]
    can = [
        [test(version) for version in versions]
        for test in (nvcc.have_fp16, nvcc.have_int8, nvcc.have_tensorcore, nvcc.have_bf16)
    ]
    assert [sum(row) for row in can] == [6, 4, 3, 2]


def test_compute_capability_of_a_target() -> None:
    target = tvm.target.Target("cuda -arch=sm_86")
    assert nvcc.get_target_compute_version(target) == "8.6"
    assert nvcc.have_tensorcore(target=target)
    with target:
        assert nvcc.have_tensorcore()
    with pytest.raises(ValueError, match="names its compute capability"):
        nvcc.get_target_compute_version(tvm.target.Target("llvm"))


def test_malformed_compute_capability_is_refused() -> None:
    with pytest.raises(RuntimeError, match="two numbers with a point, got '7'"):
        nvcc.have_fp16("7")


def test_cudnn_is_not_there() -> None:
    assert not cudnn.exists()


def test_operators_of_cudnn_refuse_calls() -> None:
    with pytest.raises(TVMError, match="cudnn.softmax is not in this release"):
        cudnn.softmax(None)
    with pytest.raises(AttributeError, match="cudnn.grouped is not in this release"):
        cudnn.grouped


def test_cuda_texts_are_compiled_by_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(RuntimeError, match="requires CUDA's compiler nvcc on the path"):
        nvcc.compile_cuda("")
    # what stands for the compiler writes its command line to its output
    compiler = tmp_path / "bin" / "nvcc"
    compiler.parent.mkdir()
    compiler.write_text(
        '#!/bin/sh\n[ "$6" = fail ] && echo no such thing && exit 1\nfor out; do :; done\n'
        'echo "$*" > "${out%my_kernel.cu}my_kernel.${1#--}"\n'
    )
    compiler.chmod(0o755)
    text = nvcc.compile_cuda("int x;", "cubin", arch="sm_70", options="-g").decode()
    assert text.startswith("--cubin -O3 -arch=sm_70 -g -o") and text.strip().endswith(".cu")
    assert nvcc.find_cuda_path() == str(tmp_path)
    with pytest.raises(RuntimeError, match="no such thing"):
        nvcc.compile_cuda("int x;", options=["a", "b", "c", "fail"])
    with pytest.raises(ValueError, match="cubin, ptx or fatbin, got 'elf'"):
        nvcc.compile_cuda("", "elf")


def test_choices_of_nnpack_are_numbers() -> None:
    assert nnpack.ConvolutionAlgorithm.WT_8x8_FP16 == 6 and not nnpack.is_available()
