"""Models in one file: `tvmc compile -o model.so`; and the whole model in an archive's library."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tvm
from tests.driver.tvmc.conftest import small_model
from tvm import relay
from tvm.contrib import graph_executor
from tvm.driver import tvmc
from tvm.driver.tvmc.main import _main
from tvm.runtime.executor import AotModule

Image = tuple[str, np.ndarray]


@pytest.mark.parametrize("options", [[], ["--executor", "aot"], ["--module-name", "net"]])
def test_libraries_are_complete_models(
    options: list[str], onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    library, out = str(tmp_path / "m.so"), str(tmp_path / "out.npz")
    assert _main(["compile", onnx_file, "-o", library, *options]) == 0
    assert _main(["run", library, "-i", image[0], "-o", out, "--print-time"]) == 0
    np.testing.assert_allclose(np.load(out)["output_0"], expected, rtol=1e-4)
    create = AotModule if "aot" in options else graph_executor.GraphModule
    name = "net" if "net" in options else "default"
    model = create(tvm.runtime.load_module(library)[name](tvm.cpu()))
    model.run(data=image[1])
    np.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-4)


def test_libraries_can_be_profiled(onnx_file: str, tmp_path: Path, capsys) -> None:
    library = str(tmp_path / "m.so")
    _main(["compile", onnx_file, "-o", library, "-O", "0"])
    assert _main(["run", library, "--profile"]) == 0
    assert "nn_relu" in capsys.readouterr().out


def test_python_compiles_to_libraries(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    package = tvmc.compile(tvmc.load(onnx_file), "llvm", package_path=str(tmp_path / "m.so"))
    assert (package.type, package.executor_type) == ("library", None)
    found = tvmc.run(package, "cpu", inputs={"data": image[1]}).get_output("output_0")
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("suffix", ["so", "tar"])
def test_programs_of_the_virtual_machine_know_their_inputs_and_outputs(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, package = str(tmp_path / "open.onnx"), str(tmp_path / f"m.{suffix}")
    onnx.save(small_model("n"), path)
    assert _main(["compile", path, "-o", package]) == 0
    capsys.readouterr()
    assert _main(["run", package, "--input-shapes", "data:[2,3,6,6]", "--fill-mode", "ones"]) == 0
    printed = capsys.readouterr().err
    name = small_model("n").graph.output[0].name
    assert "data" in printed and name in printed and "output_0" not in printed
    inputs = {"data": np.ones((2, 3, 6, 6), "float32")}
    assert tvmc.run(tvmc.TVMCPackage(package), "cpu", inputs=inputs).get_output(name).shape == (
        2,
        5,
    )


def test_archives_load_in_the_classic_way_and_have_the_factory(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    package = str(tmp_path / "m.tar")
    _main(["compile", onnx_file, "-o", package])
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path, filter="data")
    lib = tvm.runtime.load_module(str(tmp_path / "mod.so"))
    classic = graph_executor.create((tmp_path / "mod.json").read_text(), lib, tvm.cpu())
    for model in (classic, graph_executor.GraphModule(lib["default"](tvm.cpu()))):
        model.load_params((tmp_path / "mod.params").read_bytes())
        model.run(data=image[1])
        np.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-4)


def test_archives_hold_the_weights_once(tmp_path: Path) -> None:
    x, weight = relay.var("x", shape=(1, 256)), np.ones((256, 256), "float32")
    model = tvmc.TVMCModel(tvm.IRModule.from_expr(relay.nn.dense(x, relay.const(weight))), {})
    package = tmp_path / "m.tar"
    tvmc.compile(model, "llvm", package_path=str(package))
    assert weight.nbytes < package.stat().st_size < 1.5 * weight.nbytes
    for profile in (False, True):
        found = tvmc.run(
            tvmc.TVMCPackage(str(package)), "cpu", fill_mode="ones", profile=profile
        ).get_output("output_0")
        np.testing.assert_array_equal(found, np.full((1, 256), 256.0))


def test_archives_with_the_weights_in_both_run(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    built = relay.build(tvmc.load(onnx_file).mod, "llvm")
    built.export_library(str(tmp_path / "mod.so"))
    found = tvmc.run(_classic_archive(built, tmp_path), "cpu", inputs={"data": image[1]})
    np.testing.assert_allclose(found.get_output("output_0"), expected, rtol=1e-4)


def test_archives_without_the_factory_run(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    built = relay.build(tvmc.load(onnx_file).mod, "llvm")
    built.get_lib().export_library(str(tmp_path / "mod.so"))
    found = tvmc.run(_classic_archive(built, tmp_path), "cpu", inputs={"data": image[1]})
    np.testing.assert_allclose(found.get_output("output_0"), expected, rtol=1e-4)


def _classic_archive(built: Any, folder: Path) -> tvmc.TVMCPackage:
    """An archive with the folder's library."""
    (folder / "mod.json").write_text(built.get_graph_json())
    (folder / "mod.params").write_bytes(relay.save_param_dict(built.get_params()))
    with tarfile.open(folder / "classic.tar", "w") as archive:
        for name in ("mod.so", "mod.json", "mod.params"):
            archive.add(folder / name, arcname=name)
    return tvmc.TVMCPackage(str(folder / "classic.tar"))
