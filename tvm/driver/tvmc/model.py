"""A model, a compiled model in a file, and what a run gave."""

from __future__ import annotations

import json
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from tvm.contrib import cc, tar, utils
from tvm.driver.tvmc.errors import TVMCException
from tvm.driver.tvmc.run_report import RunConditions
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.serialize import load_json, save_json
from tvm.micro.model_library_format import export_model_library_format
from tvm.relay.backend.executor_factory import (
    AOTExecutorFactoryModule,
    ExecutorFactoryModule,
    GraphExecutorFactoryModule,
)
from tvm.runtime.benchmark import BenchmarkResult
from tvm.runtime.params import load_param_dict, save_param_dict
from tvm.runtime.vm import Executable
from tvm.support.files import replacing

LIBRARY_FORMATS = ("so", "tar")
_LIBRARY_SUFFIXES = (".so", ".dylib", ".dll")
# where kernels lie in packages for the graph executor and for the virtual machine
_GRAPH_LIBRARIES = ("mod.so", "mod.tar")
_VM_LIBRARIES = ("lib.so", "lib.tar")
_VM_CODE = "code.ro"
_AOT_NAME = "mod.aot"  # the name under which the library has the model


class TVMCModel:
    """An imported model.

    Parameters
    ----------
    mod : IRModule
        The model.
    params : dict of str to NDArray
        Its parameters.
    model_path : str
        A file that :meth:`save` wrote, instead of the two.
    """

    def __init__(
        self,
        mod: IRModule | None = None,
        params: Mapping[str, Any] | None = None,
        model_path: str | None = None,
    ) -> None:
        if (mod is None or params is None) and model_path is None:
            raise TVMCException(
                "Either mod and params must be provided or a path to a previously saved TVMCModel"
            )
        self._tmp_dir = utils.tempdir()
        if model_path is not None:
            self.load(model_path)
        else:
            assert mod is not None
            self.mod = mod
            self.params = dict(params or {})

    def save(self, model_path: str) -> None:
        """Write the model to an archive."""
        folder = self._tmp_dir.path
        (folder / "mod.json").write_text(save_json(self.mod), encoding="utf8")
        (folder / "mod.params").write_bytes(save_param_dict(self.params))
        tar.tar(str(model_path), [str(folder / "mod.json"), str(folder / "mod.params")])

    def load(self, model_path: str) -> None:
        """Read what :meth:`save` wrote."""
        folder = _unpacked(str(model_path), self._tmp_dir)
        if not (folder / "mod.json").is_file() or not (folder / "mod.params").is_file():
            raise TVMCException(f"{model_path} is no archive of a TVMCModel")
        try:
            self.mod = load_json((folder / "mod.json").read_text(encoding="utf8"))
            self.params = dict(load_param_dict((folder / "mod.params").read_bytes()))
        except (TVMError, ValueError) as error:
            hint = "; it is a compiled model: tvmc.TVMCPackage" * _is_package(folder)
            raise TVMCException(f"{model_path} is no archive of a TVMCModel{hint}") from error

    def default_tuning_records_path(self) -> str:
        """Where records of tuning would be written."""
        return self._tmp_dir.relpath("tuning_records")

    def default_package_path(self) -> str:
        """Where the compiled model is written, if nothing else is said."""
        return self._tmp_dir.relpath("model_package.tar")

    def export_vm_format(
        self,
        vm_exec: Executable,
        package_path: str | None = None,
        lib_format: str = "so",
        cross: Any = None,
        cross_options: str | None = None,
    ) -> str:
        """Write a program of the virtual machine to an archive; its path.

        Parameters
        ----------
        vm_exec : Executable
            The program.
        package_path : str, optional
            The archive.
        lib_format : str
            "so", or "tar" for objects that are linked where the model runs.
        cross : str or callable, optional
            A compiler that links for another machine.
        cross_options : str, optional
            More options for it.
        """
        _check_format(lib_format, LIBRARY_FORMATS)
        with utils.tempdir() as folder:
            code, lib = vm_exec.save()
            library = folder / f"lib.{lib_format}"
            _export_library(lib, library, cross, cross_options)
            (folder / _VM_CODE).write_bytes(code)
            return self._write(package_path, [library, folder / _VM_CODE])

    def export_classic_format(
        self,
        executor_factory: GraphExecutorFactoryModule,
        package_path: str | None = None,
        cross: Any = None,
        cross_options: str | None = None,
        lib_format: str = "so",
    ) -> str:
        """Write a model for the graph executor to an archive; its path.

        The weights are in ``mod.params``, once: ``load_module("mod.so")["default"](device)`` makes an
        executor whose ``load_params`` takes the content of that file.

        Parameters
        ----------
        executor_factory : GraphExecutorFactoryModule
            What `relay.build` returned.
        package_path, cross, cross_options, lib_format :
            As of :meth:`export_vm_format`.
        """
        _check_format(lib_format, LIBRARY_FORMATS)
        with utils.tempdir() as folder:
            library = folder / f"mod.{lib_format}"
            without_weights = executor_factory["remove_params"]()
            _export_library(without_weights, library, cross, cross_options)
            (folder / "mod.json").write_text(executor_factory.get_graph_json(), encoding="utf8")
            (folder / "mod.params").write_bytes(save_param_dict(executor_factory.get_params()))
            files = [library, folder / "mod.json", folder / "mod.params"]
            return self._write(package_path, files)

    def export_aot_format(
        self,
        executor_factory: AOTExecutorFactoryModule,
        package_path: str | None = None,
        cross: Any = None,
        cross_options: str | None = None,
        lib_format: str = "so",
    ) -> str:
        """Write a model for the AOT executor, weights inside, to an archive; parameters as of the classic format."""
        _check_format(lib_format, LIBRARY_FORMATS)
        with utils.tempdir() as folder:
            library = folder / f"mod.{lib_format}"
            _export_library(executor_factory, library, cross, cross_options)
            (folder / _AOT_NAME).write_text(executor_factory.libmod_name, encoding="utf8")
            return self._write(package_path, [library, folder / _AOT_NAME])

    def export_mlf(
        self, executor_factory: ExecutorFactoryModule, package_path: str | None = None
    ) -> str:
        """Write a model in the Model Library Format: sources in C, or objects; the archive's path."""
        path = str(package_path or self.default_package_path())
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        return str(export_model_library_format(executor_factory, path))

    def export_package(
        self,
        executor_factory: ExecutorFactoryModule | Executable,
        package_path: str | None = None,
        cross: Any = None,
        cross_options: str | None = None,
        output_format: str = "so",
    ) -> str:
        """Write a compiled model to an archive, or to one library if the suffix is ``.so``; its path."""
        if package_path is not None and is_library(package_path):
            _check_format(output_format, LIBRARY_FORMATS[:1])
            return self.export_library(executor_factory, package_path, cross, cross_options)
        if isinstance(executor_factory, Executable):
            return self.export_vm_format(
                executor_factory, package_path, output_format, cross, cross_options
            )
        if output_format == "mlf":
            return self.export_mlf(executor_factory, package_path)
        _check_runtime(executor_factory)
        options = (package_path, cross, cross_options, output_format)
        if isinstance(executor_factory, AOTExecutorFactoryModule):
            return self.export_aot_format(executor_factory, *options)
        assert isinstance(executor_factory, GraphExecutorFactoryModule)
        return self.export_classic_format(executor_factory, *options)

    def export_library(
        self,
        executor_factory: ExecutorFactoryModule | Executable,
        package_path: str,
        cross: Any = None,
        cross_options: str | None = None,
    ) -> str:
        """Write a compiled model as one shared library, weights included; its path."""
        module: Any = executor_factory
        if isinstance(executor_factory, Executable):
            module = executor_factory.mod
        else:
            _check_runtime(executor_factory)
        path = Path(package_path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _export_library(module, path, cross, cross_options)
        return str(path)

    def _write(self, package_path: str | None, files: Sequence[Path]) -> str:
        path = str(package_path or self.default_package_path())
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        tar.tar(path, [str(file) for file in files])
        return path

    def summary(self, file: IO[str] | None = None) -> None:
        """Print the model."""
        print(self.mod, file=file or sys.stdout)


def _export_library(module: Any, library: Path, cross: Any, cross_options: str | None) -> None:
    """Write a library, by a compiler for another machine if there is one."""
    options: dict[str, Any] = {"options": cross_options.split()} if cross_options else {}
    if library.suffix == ".tar":
        module.export_library(str(library))
    elif cross is None:
        module.export_library(str(library), **options)
    else:
        module.export_library(str(library), fcompile=cc.cross_compiler(cross, **options))


def is_library(path: str | Path) -> bool:
    """Whether a file's name is one of a shared library."""
    return Path(path).suffix in _LIBRARY_SUFFIXES


def _check_runtime(factory: ExecutorFactoryModule) -> None:
    if factory.runtime.name != "cpp":
        raise TVMCException(
            f"libraries are for the runtime cpp, got {factory.runtime}: "
            "--output-format mlf writes sources for others"
        )


def _check_format(found: str, known: Sequence[str]) -> None:
    if found not in known:
        raise TVMCException(f"a library is written as {' or '.join(known)}, got {found!r}")


def _is_package(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (*_GRAPH_LIBRARIES, *_VM_LIBRARIES))


def _unpacked(path: str, into: utils.TempDirectory) -> Path:
    """The folder with the members of an archive."""
    if not Path(path).is_file():
        raise TVMCException(f"there is no file {path}")
    try:
        tar.untar(path, into.temp_dir)
    except (tarfile.TarError, ValueError, EOFError) as error:
        reason = str(error).partition(":")[0]
        raise TVMCException(f"{path} is no archive of a model: {reason}") from None
    return into.path


class TVMCPackage:
    """A compiled model.

    Parameters
    ----------
    package_path : str
        The archive or the library that :func:`tvmc.compile` wrote.
    project_dir : str, optional
        Has to be left out: there are no projects for microcontrollers.

    Attributes
    ----------
    type : str
        "classic" for the graph and the AOT executor, "vm", "library" for one library of any kind, or
        "mlf" for the Model Library Format.
    executor_type : str
        "graph", "aot" or "vm"; None for a library, which tells when it is loaded.
    lib_path, lib_name : str
        The library with the kernels.
    graph : str
        The graph as JSON text, None for the virtual machine.
    params : bytearray
        The parameters, None for the virtual machine.
    module_name : str
        The name under which a library of the AOT executor has the model.
    """

    def __init__(self, package_path: str, project_dir: str | None = None) -> None:
        if project_dir is not None:
            raise TVMCException("there are no projects for microcontrollers, leave project_dir out")
        self._tmp_dir = utils.tempdir()
        self.project_dir = None
        self.package_path = str(package_path)
        self.lib_name: str | None = None
        self.lib_path: str | None = None
        self.graph: str | None = None
        self.params: bytearray | None = None
        self.code: bytes | None = None
        self.type = "classic"
        self.executor_type: str | None = "graph"
        self.module_name = "default"
        self.import_package(self.package_path)

    def import_package(self, package_path: str) -> None:
        """Unpack an archive; a library is taken as it is."""
        if is_library(package_path):
            self._take_library(package_path)
            return
        folder = _unpacked(package_path, self._tmp_dir)
        names = {path.name for path in folder.iterdir()}
        if "metadata.json" in names:
            self._import_mlf(folder)
        elif found := [name for name in _GRAPH_LIBRARIES if name in names]:
            self.lib_name = found[0]
            if _AOT_NAME in names:
                self.executor_type = "aot"
                self.module_name = (folder / _AOT_NAME).read_text(encoding="utf8")
                self.lib_path = str(folder / self.lib_name)
                return
            self.graph = _member(folder, "mod.json", package_path).read_text(encoding="utf8")
            self.params = bytearray(_member(folder, "mod.params", package_path).read_bytes())
        elif found := [name for name in _VM_LIBRARIES if name in names]:
            self.lib_name = found[0]
            self.type = self.executor_type = "vm"
            self.code = _member(folder, _VM_CODE, package_path).read_bytes()
        else:
            raise TVMCException(
                f"{package_path} is no compiled model: it holds {', '.join(sorted(names))}"
            )
        if self.lib_name is not None:
            self.lib_path = str(folder / self.lib_name)

    def _take_library(self, path: str) -> None:
        if not Path(path).is_file():
            raise TVMCException(f"there is no file {path}")
        self.type, self.executor_type = "library", None
        self.lib_name, self.lib_path = Path(path).name, str(Path(path).resolve())

    def _import_mlf(self, folder: Path) -> None:
        self.type = "mlf"
        modules = json.loads((folder / "metadata.json").read_text(encoding="utf8"))["modules"]
        self.executor_type = next(iter(modules.values()))["executors"][0]
        graph = folder / "executor-config" / "graph" / f"{next(iter(modules))}.graph"
        params = folder / "parameters" / f"{next(iter(modules))}.params"
        self.graph = graph.read_text(encoding="utf8") if graph.is_file() else None
        self.params = bytearray(params.read_bytes()) if params.is_file() else None


def _member(folder: Path, name: str, package: str) -> Path:
    if not (folder / name).is_file():
        raise TVMCException(f"{package} is no compiled model: it has no {name}")
    return folder / name


class TVMCResult:
    """What a run gave.

    Parameters
    ----------
    outputs : dict of str to ndarray
        The outputs: output_0, output_1, ...
    times : BenchmarkResult
        How long it took; None or an empty list if that was not measured.
    conditions : RunConditions, optional
        What it ran on, and with which inputs.
    """

    def __init__(
        self,
        outputs: Mapping[str, np.ndarray[Any, Any]] | None,
        times: BenchmarkResult | Sequence[float] | None,
        conditions: RunConditions | None = None,
    ) -> None:
        self.outputs = dict(outputs or {})
        self.times = times
        self.conditions = conditions

    def format_times(self) -> str:
        """A table of the times."""
        return str(self.times) if self.times else ""

    def get_output(self, name: str) -> np.ndarray[Any, Any]:
        """The output of that name, or of the name that the imported model gave it."""
        own_names = self.conditions.output_names if self.conditions is not None else ()
        found = {**dict(zip(own_names, self.outputs.values(), strict=False)), **self.outputs}
        if name not in found:
            raise TVMCException(f"there is no output {name!r}, outputs: {list(found)}")
        return found[name]

    def save(self, output_path: str) -> None:
        """Write the outputs to a file of numpy (``.npz``)."""
        # narrow floats are none of numpy's own types: files could not be read without ours
        plain: dict[str, Any] = {
            name: value.astype("float32") if value.dtype.kind == "V" else value
            for name, value in self.outputs.items()
        }
        name = str(output_path)
        with replacing(name if name.endswith(".npz") else f"{name}.npz") as new:
            np.savez(new, **plain)

    def __str__(self) -> str:
        stat_table = self.format_times()
        output_keys = f"Output Names:\n {list(self.outputs)}"
        return f"{stat_table}\n{output_keys}" if stat_table else output_keys
