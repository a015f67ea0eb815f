from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import tvm
from tests.driver.tvmc.conftest import small_model
from tests.system_tools import needs_tool
from tvm.driver import tvmc
from tvm.driver.tvmc.main import _main
from tvm.driver.tvmc.model import TVMCResult
from tvm.driver.tvmc.result_utils import get_top_results, largest

Image = tuple[str, np.ndarray]


def test_python_face_loads_compiles_and_runs(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    model = tvmc.load(onnx_file)
    package = tvmc.compile(model, target="llvm", package_path=str(tmp_path / "m.tar"))
    result = tvmc.run(package, device="cpu", inputs={"data": image[1]})
    np.testing.assert_allclose(result.get_output("output_0"), expected, rtol=1e-4)
    assert result.times == [] and "output_0" in str(result)


def test_command_line_compiles_and_runs(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    package, out = str(tmp_path / "m.tar"), str(tmp_path / "out.npz")
    assert _main(["compile", onnx_file, "--target", "llvm", "-o", package]) == 0
    assert _main(["run", package, "--inputs", image[0], "--outputs", out]) == 0
    np.testing.assert_allclose(np.load(out)["output_0"], expected, rtol=1e-4)


def test_module_is_a_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tvm.driver.tvmc", "--version"], capture_output=True, text=True
    )
    assert done.stdout.strip() == tvm.__version__ and done.returncode == 0


def test_print_top_shows_indices_and_values(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path, capsys
) -> None:
    package = str(tmp_path / "m.tar")
    _main(["compile", onnx_file, "-o", package])
    capsys.readouterr()
    _main(["run", package, "-i", image[0], "--print-top", "2", "--print-time", "--repeat", "3"])
    text = capsys.readouterr().out
    assert "mean (ms)" in text
    assert text.split("[[")[1].split()[0] == f"{expected.argmax()}."


def test_profile_names_the_kernels(onnx_file: str, tmp_path: Path, capsys) -> None:
    package = str(tmp_path / "m.tar")
    _main(["compile", onnx_file, "-o", package, "-O", "0"])
    _main(["run", package, "--profile", "--fill-mode", "ones"])
    assert "nn_relu" in capsys.readouterr().out


@pytest.mark.parametrize("options", [
    ["-O", "0"],
    ["-f", "tar"],
    ["--desired-layout", "NHWC"],
    ["--desired-layout", "NHWC:HWIO", "--desired-layout-ops", "nn.conv2d"],
    ["--pass-config", "tir.disable_vectorize=1", "--disabled-pass", "FuseOps,FoldConstant"],
    ["--target", "c"],
    ["--target-llvm-mcpu=haswell", "--target-llvm-num-cores", "1"],
    ["--target", '{"kind": "llvm", "mcpu": "haswell"}'],
    ["--executor", "graph", "--runtime", "cpp", "--module-name", "net"],
    ["--use-vm"],
    ["--executor", "aot"],
    ["--executor", "aot", "--module-name", "net", "--executor-aot-link-params", "1"],
    ["--executor-graph-link-params", "1"],
    ["--executor", "aot", "--workspace-pools", "small,large",
     "--workspace-pools-targets", "small:llvm", "--workspace-pools-targets", "large:llvm",
     "--workspace-pools-size-hint-bytes", "small:4096"],
    ["--mixed-precision", "--mixed-precision-calculation-type", "float16",
     "--mixed-precision-acc-type", "float32"],
])  # fmt: skip
def test_options_keep_the_result(
    options: list[str], onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    package, out = str(tmp_path / "m.tar"), str(tmp_path / "out.npz")
    assert _main(["compile", onnx_file, "-o", package, *options]) == 0
    assert _main(["run", package, "-i", image[0], "-o", out]) == 0
    tolerance = 2e-2 if "--mixed-precision" in options else 1e-4
    np.testing.assert_allclose(np.load(out)["output_0"], expected, rtol=tolerance, atol=tolerance)


def test_inputs_of_the_virtual_machine_are_filled(onnx_file: str, expected: np.ndarray) -> None:
    package = tvmc.compile(tvmc.load(onnx_file), "llvm", use_vm=True)
    found = tvmc.run(package, "cpu", fill_mode="zeros").get_output("output_0")
    assert found.shape == expected.shape and np.isfinite(found).all()


def test_exported_programs_are_known_by_their_content(tmp_path: Path) -> None:
    import torch

    path = tmp_path / "exported.pt"
    torch.export.save(torch.export.export(torch.nn.Softmax(-1), (torch.zeros(2, 3),)), path)
    result = tvmc.run(tvmc.compile(tvmc.load(path), "llvm"), "cpu", fill_mode="ones")
    np.testing.assert_allclose(result.get_output("output_0"), np.full((2, 3), 1 / 3), 1e-5)


def test_input_shapes_determine_unknown_dimensions(tmp_path: Path) -> None:
    path, package = str(tmp_path / "dynamic.onnx"), str(tmp_path / "m.tar")
    onnx.save(small_model("n"), path)
    assert _main(["compile", path, "-o", package, "--input-shapes", "data:[2,3,6,6]"]) == 0
    assert tvmc.run(tvmc.TVMCPackage(package), "cpu").get_output("output_0").shape == (2, 5)


def test_packages_hold_library_graph_and_parameters(onnx_file: str, tmp_path: Path) -> None:
    package = str(tmp_path / "m.tar")
    _main(["compile", onnx_file, "-o", package])
    with tarfile.open(package) as archive:
        assert sorted(archive.getnames()) == ["mod.json", "mod.params", "mod.so"]
        assert "nodes" in json.load(archive.extractfile("mod.json"))  # type: ignore[arg-type]


@needs_tool("aarch64-linux-gnu-gcc")
def test_cross_compilers_link_for_other_machines(onnx_file: str, tmp_path: Path) -> None:
    package = str(tmp_path / "m.tar")
    status = _main(["compile", onnx_file, "-o", package, "--cross-compiler", "aarch64-linux-gnu-gcc",
                    "--target", "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"])  # fmt: skip
    assert status == 0
    with tarfile.open(package) as archive:
        header = archive.extractfile("mod.so").read(20)  # type: ignore[union-attr]
    assert header[:4] == b"\x7fELF" and header[18] == 183


def test_dumps_lie_beside_the_package(onnx_file: str, tmp_path: Path) -> None:
    package = tmp_path / "m.tar"
    _main(["compile", onnx_file, "-o", str(package), "--dump-code", "relay,tir,ll,asm"])
    contents = {"relay": "nn.conv2d", "tir": "T.prim_func", "ll": "define", "asm": ".text"}
    for suffix, part in contents.items():
        assert part in (tmp_path / f"m.tar.{suffix}").read_text()


def test_passes_can_be_watched(onnx_file: str, tmp_path: Path, capsys) -> None:
    package = str(tmp_path / "m.tar")
    _main(
        ["compile", onnx_file, "-o", package, "--print-pass-times", "--print-ir-after", "FuseOps"]
    )
    text = capsys.readouterr().out
    assert "after FuseOps" in text and "Compilation time breakdown by pass" in text


def test_offloads_are_listed(onnx_file: str, tmp_path: Path) -> None:
    listing = tmp_path / "offloads.txt"
    _main(["compile", onnx_file, "-o", str(tmp_path / "m.tar"), "--dump-offloads", str(listing)])
    assert "native: " in listing.read_text() and "nn.conv2d in @main" in listing.read_text()


def test_pytorch_and_relay_files_compile(tmp_path: Path) -> None:
    import torch

    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
    data = torch.randn(2, 4)
    traced = str(tmp_path / "m.pt")
    torch.jit.trace(module, data).save(traced)
    model = tvmc.load(traced, shape_dict={"x": [2, 4]})
    result = tvmc.run(tvmc.compile(model, "llvm"), "cpu", inputs={"x": data.numpy()})
    np.testing.assert_allclose(
        result.get_output("output_0"), module(data).detach(), rtol=1e-5, atol=1e-6
    )

    text = tmp_path / "m.relay"
    text.write_text('#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), float32]) { nn.relu(%x) }')
    result = tvmc.run(
        tvmc.compile(tvmc.load(str(text)), "llvm"), "cpu", inputs={"x": np.arange(-1, 2)}
    )
    np.testing.assert_array_equal(result.get_output("output_0"), [0, 0, 1])


def test_models_can_be_saved(onnx_file: str, tmp_path: Path) -> None:
    model = tvmc.load(onnx_file, freeze_params=False)
    model.save(str(tmp_path / "saved.tar"))
    again = tvmc.TVMCModel(model_path=str(tmp_path / "saved.tar"))
    tvm.ir.assert_structural_equal(model.mod, again.mod)
    assert sorted(again.params) == sorted(model.params)


def test_summary_prints_the_model(onnx_file: str, tmp_path: Path) -> None:
    with (tmp_path / "summary").open("w") as file:
        tvmc.load(onnx_file).summary(file)
    assert "nn.conv2d" in (tmp_path / "summary").read_text()


def test_configurations_give_defaults(
    onnx_file: str, tmp_path: Path, tvmc_fails: Callable[..., str]
) -> None:
    config = tmp_path / "mine.json"
    config.write_text('{"targets": [{"kind": "c"}], "output": "%s"}' % (tmp_path / "c.tar"))
    assert _main(["--config", str(config), "compile", onnx_file, "--dump-code", "c"]) == 0
    assert "TVM_DLL" in (tmp_path / "c.tar.c").read_text()
    assert "JSON" in tvmc_fails("--config", onnx_file, "compile", onnx_file)


def test_model_library_format_holds_sources(onnx_file: str, tmp_path: Path) -> None:
    package = str(tmp_path / "m.tar")
    assert _main(["compile", onnx_file, "-o", package, "-f", "mlf", "--target", "c",
                  "--executor", "aot", "--executor-aot-interface-api", "c",
                  "--executor-aot-unpacked-api", "1", "--runtime", "crt"]) == 0  # fmt: skip
    with tarfile.open(package) as archive:
        names = archive.getnames()
    assert "metadata.json" in names and any(name.endswith("tvmgen_default.h") for name in names)
    found = tvmc.TVMCPackage(package)
    assert (found.type, found.executor_type) == ("mlf", "aot")
    with pytest.raises(tvmc.TVMCException, match="Model Library Format"):
        tvmc.run(found, "cpu")


@pytest.mark.parametrize("options", [[], ["--executor", "aot"], ["--use-vm"]])
def test_inputs_may_have_any_name(options: list[str], tmp_path: Path) -> None:
    names = ["key", "number", "func_name"]
    model, package = tmp_path / "m.relay", str(tmp_path / "m.tar")
    params = ", ".join(f"%{name}: Tensor[(2), float32]" for name in names)
    model.write_text(
        f'#[version = "0.0.5"]\ndef @main({params}) {{ add(add(%key, %number), %func_name) }}'
    )
    assert _main(["compile", str(model), "-o", package, *options]) == 0
    inputs = {name: np.full(2, i, "float32") for i, name in enumerate(names, 1)}
    result = tvmc.run(tvmc.TVMCPackage(package), "cpu", inputs=inputs, benchmark=True, repeat=1)
    assert result.get_output("output_0").tolist() == [6, 6]


def test_print_top_looks_along_the_last_axis() -> None:
    def top(shape: tuple[int, ...], count: int) -> np.ndarray:
        scores = np.arange(np.prod(shape), dtype="float32").reshape(shape)
        return largest(TVMCResult({"output_0": scores}, None), count)

    assert top((1, 4), 2).tolist() == top((4,), 2).tolist() == [[3, 2], [3, 2]]
    assert top((2, 4), 1).tolist() == [[[3], [3]], [[3], [7]]]
    assert top((1, 2, 1, 3), 9).tolist() == [[[2, 1, 0], [2, 1, 0]], [[2, 1, 0], [5, 4, 3]]]
    assert top((), 3).tolist() == [[0], [0]]
    matrix = TVMCResult({"output_0": np.array([[1, 3], [5, 4]])}, None)
    assert get_top_results(matrix, 1).tolist() == [[1], [3]]  # of the first row


@pytest.mark.parametrize("executor", ["graph", "aot"])
def test_outputs_have_the_names_of_the_model(
    onnx_file: str, executor: str, tmp_path: Path, capsys
) -> None:
    package, out = str(tmp_path / "m.tar"), str(tmp_path / "out.npz")
    _main(["compile", onnx_file, "-o", package, "--executor", executor])
    _main(["run", package, "-o", out])
    assert "output  scores" in capsys.readouterr().err
    assert np.load(out).files == ["output_0"]  # as in the classic release
    result = tvmc.run(tvmc.TVMCPackage(package), "cpu", fill_mode="ones")
    assert result.get_output("scores") is result.get_output("output_0")


def test_runs_say_what_ran(onnx_file: str, image: Image, tmp_path: Path, capsys) -> None:
    package, out = str(tmp_path / "m.tar"), str(tmp_path / "out.npz")
    _main(["compile", onnx_file, "-o", package])
    capsys.readouterr()
    _main(["run", package, "--fill-mode", "zeros"])
    found = capsys.readouterr()
    lines = found.err.splitlines()
    assert lines[0] == f"ran {package} on cpu (graph executor)" and not found.out
    assert lines[1].split() == ["input", "data", "float32[1,", "3,", "6,", "6]", "zeros"]
    assert lines[2].split()[:4] == ["output", "scores", "float32[1,", "5]"]
    assert lines[2].endswith(" ...")
    _main(["run", package, "-i", image[0], "-o", out])
    found = capsys.readouterr().err
    assert " given\n" in found and f"written to {out}" in found
    _main(["run", package, "-q", "--print-top", "1"])
    found = capsys.readouterr()
    assert not found.err and found.out.startswith("[[")
