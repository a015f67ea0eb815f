"""What is known of NVIDIA's devices and libraries on a machine without them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tvm
from tvm.contrib import cudnn, emcc, nnpack, nvcc, rocm, spirv, stackvm
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


def test_malformed_compute_capability_is_rejected() -> None:
    with pytest.raises(RuntimeError, match="two numbers with a point, got '7'"):
        nvcc.have_fp16("7")


def test_cudnn_is_not_there() -> None:
    assert not cudnn.exists()


def test_operators_of_cudnn_reject_calls() -> None:
    with pytest.raises(TVMError, match="cudnn.softmax is not in this release"):
        cudnn.softmax(None)
    with pytest.raises(AttributeError, match="cudnn.grouped is not in this release"):
        cudnn.grouped


def test_cuda_sources_are_compiled_by_nvcc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_what_is_known_of_cuda_is_read_from_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvcc, "find_cuda_path", lambda: str(tmp_path))
    assert nvcc.callback_libdevice_path(70) == "" and not nvcc.have_cudagraph()
    with pytest.raises(RuntimeError, match="does not tell it"):
        nvcc.get_cuda_version()
    (tmp_path / "version.json").write_text('{"cuda": {"version": "12.4.1"}}')
    assert nvcc.get_cuda_version() == (12, 4, 1) and nvcc.have_cudagraph()
    folder = tmp_path / "nvvm" / "libdevice"
    folder.mkdir(parents=True)
    for arch in (30, 50):
        (folder / f"libdevice.compute_{arch}.10.bc").touch()
    assert nvcc.find_libdevice_path(70).endswith("compute_50.10.bc")
    (folder / "libdevice.10.bc").touch()
    assert nvcc.callback_libdevice_path(70) == str(folder / "libdevice.10.bc")
    assert nvcc.have_fp8("8.9") and not nvcc.have_fp8("8.6")


def test_tools_for_other_devices_are_asked_for_when_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert rocm.find_lld(required=False) == [] and not rocm.have_matrixcore()
    assert rocm.have_matrixcore("9.0") and rocm.get_rocm_arch(str(tmp_path)) == "gfx900"
    with pytest.raises(RuntimeError, match="requires LLVM's linker"):
        rocm.callback_rocm_link(b"")
    with pytest.raises(RuntimeError, match="requires the program spirv-opt"):
        spirv.optimize(b"")
    with pytest.raises(RuntimeError, match="emcc is not there"):
        emcc.create_tvmjs_wasm("a.wasm", ["a.bc"])


def test_a_stackvm_library_is_its_code(tmp_path: Path) -> None:
    code, library = tmp_path / "code.stackvm", tmp_path / "library.stackvm"
    code.write_bytes(b"code")
    stackvm.build(str(library), [str(code)])
    assert library.read_bytes() == b"code"
    with pytest.raises(RuntimeError, match="requires one file, got 2"):
        stackvm.build(str(library), [str(code)] * 2)


def test_choices_of_nnpack_are_numbers() -> None:
    assert nnpack.ConvolutionAlgorithm.WT_8x8_FP16 == 6 and not nnpack.is_available()
