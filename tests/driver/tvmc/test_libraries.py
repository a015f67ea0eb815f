"""Models in one file: `tvmc compile -o model.so`; and the whole model in an archive's library."""

from __future__ import annotations

import tarfile
from pathlib import Path

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.driver import tvmc
from tvm.driver.tvmc.main import _main
from tvm.runtime.executor import AotModule

Image = tuple[str, np.ndarray]


@pytest.mark.parametrize("options", [[], ["--executor", "aot"], ["--module-name", "net"]])
def test_libraries_are_whole_models(
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


def test_archives_load_in_the_classic_way_and_have_the_factory(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    package = str(tmp_path / "m.tar")
    _main(["compile", onnx_file, "-o", package])
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path, filter="data")
    lib = tvm.runtime.load_module(str(tmp_path / "mod.so"))
    classic = graph_executor.create((tmp_path / "mod.json").read_text(), lib, tvm.cpu())
    classic.load_params((tmp_path / "mod.params").read_bytes())
    for model in (classic, graph_executor.GraphModule(lib["default"](tvm.cpu()))):
        model.run(data=image[1])
        np.testing.assert_allclose(model.get_output(0).numpy(), expected, rtol=1e-4)


def test_archives_without_the_factory_run(
    onnx_file: str, image: Image, expected: np.ndarray, tmp_path: Path
) -> None:
    built = relay.build(tvmc.load(onnx_file).mod, "llvm")
    built.get_lib().export_library(str(tmp_path / "mod.so"))
    (tmp_path / "mod.json").write_text(built.get_graph_json())
    (tmp_path / "mod.params").write_bytes(relay.save_param_dict(built.get_params()))
    with tarfile.open(tmp_path / "classic.tar", "w") as archive:
        for name in ("mod.so", "mod.json", "mod.params"):
            archive.add(tmp_path / name, arcname=name)
    package = tvmc.TVMCPackage(str(tmp_path / "classic.tar"))
    found = tvmc.run(package, "cpu", inputs={"data": image[1]}).get_output("output_0")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
