"""The Model Library Format: models as a folder of sources, in a tar archive.

metadata.json                       what is in the archive
codegen/host/src/<name>_lib0.c      C text of the model and its kernels
codegen/host/lib/<name>_lib0.o      or objects
codegen/host/include/tvmgen_<name>.h   how programs in C call the model (interface-api "c")
executor-config/graph/<name>.graph  the graph, for the graph executor
parameters/<name>.params            the parameters that are not in the code
src/<name>.relay                    the model
runtime/                            headers and sources of the C runtime (runtime "crt")

An archive of operators has their code as codegen/host/src/lib0.c, and their loops as src/tir-1.txt.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tvm._ffi.libinfo import find_include_path
from tvm.contrib import utils
from tvm.contrib.tar import write_archive
from tvm.driver.build_module import OperatorModule
from tvm.error import TVMError
from tvm.relay.backend.c_interface import byte_size, header_text
from tvm.relay.backend.executor_factory import (
    AOTExecutorFactoryModule,
    ExecutorFactoryModule,
    GraphExecutorFactoryModule,
)
from tvm.relay.backend.function_info import MAIN, FunctionInfo
from tvm.relay.backend.graph import bytes_of_elements
from tvm.relay.backend.name_transforms import mangle_module_name, sanitize
from tvm.runtime.export import collect_modules
from tvm.runtime.module import Module
from tvm.runtime.params import save_param_dict
from tvm.support.dtype import dtype as as_dtype
from tvm.target import Target
from tvm.tir import Buffer, IntImm, PrimFunc

VERSION = 7
_CRT = Path(__file__).parent / "crt"
_HEADERS = ("c_backend_api.h", "c_runtime_api.h", "metadata_types.h")


class UnsupportedInModelLibraryFormatError(TVMError):
    """A module has parts that the Model Library Format has no place for."""


def get_standalone_crt_dir() -> str:
    """The folder with the C runtime: `include` and `src`."""
    return str(_CRT)


def export_model_library_format(
    mod: ExecutorFactoryModule | OperatorModule | Sequence[ExecutorFactoryModule],
    file_name: str | Path,
) -> Path:
    """Write models, or operators, as a tar archive of sources.

    Parameters
    ----------
    mod : module or list of module
        What `relay.build` returned; several models need names of their own. Or what `tvm.build`
        returned: then the archive has its functions and the loops that they were made from.
    file_name : str or Path
        The archive.

    Returns
    -------
    The path of the archive.
    """
    modules = [] if isinstance(mod, OperatorModule) else _models(mod)
    with utils.kept_folder() as folder:
        if isinstance(mod, OperatorModule):
            _write_operators(mod, Path(folder))
        else:
            _write_tree(modules, Path(folder))
        write_archive(file_name, {path.name: path for path in sorted(Path(folder).iterdir())})
    return Path(file_name)


def _models(mod: object) -> list[ExecutorFactoryModule]:
    """The models of one archive, if they can be."""
    modules: list[Any] = list(mod) if isinstance(mod, (list, tuple)) else [mod]
    if not modules:
        raise ValueError("export_model_library_format needs at least one module, got none")
    for module in modules:
        if not isinstance(module, ExecutorFactoryModule):
            raise TypeError(
                "export_model_library_format needs what relay.build returns, or tvm.build, got "
                f"{type(module).__name__}"
            )
    names = [module.libmod_name for module in modules]
    if len(set(names)) < len(names):
        raise ValueError(
            f"Multiple modules should have unique names, got {', '.join(names)}: "
            "give relay.build a mod_name"
        )
    runtimes = {module.runtime.name for module in modules}
    if len(runtimes) > 1:
        raise ValueError(f"modules of one archive need one runtime, got {sorted(runtimes)}")
    return modules


def _write_tree(modules: Sequence[ExecutorFactoryModule], folder: Path) -> None:
    described = {module.libmod_name: _model_metadata(module) for module in modules}
    metadata = {"version": VERSION, "modules": described}
    (folder / "metadata.json").write_text(json.dumps(metadata, indent=2, sort_keys=True))
    for module in modules:
        name = module.libmod_name
        _write_code(module.lib, folder, name)
        _write(folder / "src" / f"{name}.relay", module.ir_mod.astext(show_meta_data=False))
        _write(folder / "parameters" / f"{name}.params", save_param_dict(module.params))
        if isinstance(module, GraphExecutorFactoryModule):
            _write(folder / "executor-config" / "graph" / f"{name}.graph", module.graph_json)
        if _has_c_interface(module):
            assert isinstance(module, AOTExecutorFactoryModule)
            header = f"{sanitize(mangle_module_name(name)).lower()}.h"
            text = header_text(module.executor_codegen_metadata.interface)
            _write(folder / "codegen" / "host" / "include" / header, text)
    if modules[0].runtime.name == "crt":
        _copy_runtime(folder / "runtime")


def _has_c_interface(module: ExecutorFactoryModule) -> bool:
    return module.executor.attrs.get("interface-api") == "c"


def _write_operators(module: OperatorModule, folder: Path) -> None:
    loops = module.ir_module_by_target
    name = module.name or "default_function"
    _write_code(module, folder)
    for target, mod in loops.items():
        number = int(target.get_target_device_type())
        _write(folder / "src" / f"tir-{number}.txt", str(mod))
    metadata = {
        "version": VERSION,
        "model_name": name,
        "export_datetime": _now(),
        "memory": {
            gvar.name_hint: [_argument(buffer) for buffer in func.buffer_map.values()]
            for mod in loops.values()
            for gvar, func in mod.functions.items()
            if isinstance(func, PrimFunc)
        },
        "target": [str(target) for target in loops],
        "executors": [],
        "style": "operator",
    }
    (folder / "metadata.json").write_text(json.dumps(metadata, indent=2, sort_keys=True))


def _argument(buffer: Buffer) -> dict[str, Any]:
    """An argument of an operator; extents that are not constant have no size."""
    shape = [int(d) if isinstance(d, (int, IntImm)) else str(d) for d in buffer.shape]
    known = [d for d in shape if isinstance(d, int)]
    return {
        "dtype": str(buffer.dtype),
        "input_binding": buffer.name,
        "shape": shape,
        "size_bytes": _nbytes(str(buffer.dtype), known) if len(known) == len(shape) else None,
    }


def _write_code(lib: Module, folder: Path, name: str | None = None) -> None:
    host = folder / "codegen" / "host"
    prefix = f"{name}_" if name else ""
    for number, part in enumerate(collect_modules(lib)):
        if not part.is_dso_exportable:
            raise UnsupportedInModelLibraryFormatError(
                f"the Model Library Format takes C text and objects, {name or 'the operators'} "
                f"have a module of type {part.type_key!r}"
            )
        is_text = part.type_key == "c"
        suffix = part.format or ("c" if is_text else "o")
        path = host / ("src" if is_text else "lib") / f"{prefix}lib{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        part.save(str(path), suffix)


def _copy_runtime(folder: Path) -> None:
    shutil.copytree(_CRT, folder, dirs_exist_ok=True)
    (include,) = find_include_path()[:1]
    for name in _HEADERS:
        shutil.copy(
            Path(include) / "tvm" / "runtime" / name, folder / "include" / "tvm" / "runtime"
        )
    shutil.copytree(Path(include) / "dlpack", folder / "include" / "dlpack")


def _write(path: Path, content: str | bytes | bytearray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else bytes(content))


# ---- metadata.json


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%SZ")


def _model_metadata(module: ExecutorFactoryModule) -> dict[str, Any]:
    memory: dict[str, Any] = {}
    if isinstance(module, GraphExecutorFactoryModule):
        memory["sids"] = _storages(json.loads(module.graph_json))
    memory["functions"] = _functions(module)
    return {
        "model_name": module.libmod_name,
        "export_datetime": _now(),
        "memory": memory,
        "target": [str(module.target)],
        "executors": [module.executor.name],
        "style": "full-model",
    }


def _storages(graph: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The storages of a graph in order: how large, and which input they hold."""
    attrs = graph["attrs"]
    bindings = {node: graph["nodes"][node]["name"] for node in graph["arg_nodes"]}
    starts = {graph["node_row_ptr"][node]: name for node, name in bindings.items()}
    found: dict[int, dict[str, Any]] = {}
    columns = (attrs["storage_id"][1], attrs["dltype"][1], attrs["shape"][1])
    for entry, (storage, dtype, shape) in enumerate(zip(*columns, strict=True)):
        item = found.setdefault(
            storage, {"storage_id": storage, "size_bytes": 0, "input_binding": ""}
        )
        item["size_bytes"] = max(item["size_bytes"], _nbytes(dtype, shape))
        if entry in starts:
            item["input_binding"] = starts[entry]
    return [found[storage] for storage in sorted(found)]


def _functions(module: ExecutorFactoryModule) -> dict[str, Any]:
    found = _build_function_memory_map(module.function_metadata)
    inputs, outputs = _arguments(module)
    for main in found["main"]:
        main |= {"inputs": inputs, "outputs": outputs}
    return found


def _build_function_memory_map(function_metadata: Mapping[str, FunctionInfo]) -> dict[str, Any]:
    """The bytes that functions need, in the form of the archive; programs know this name."""
    main = function_metadata[MAIN]
    return {
        "main": [
            {
                **_sizes(main, target),
                "constants_size_bytes": main.constant_sizes[target],
                "io_size_bytes": main.io_sizes[target],
            }
            for target in main.workspace_sizes
        ],
        "operator_functions": [
            {
                "function_name": name,
                "workspace": [_sizes(info, target) for target in info.workspace_sizes],
            }
            for name, info in function_metadata.items()
            if name != MAIN
        ],
    }


def _sizes(info: FunctionInfo, target: Target) -> dict[str, int]:
    return {
        "device": int(target.get_target_device_type()),
        "workspace_size_bytes": info.workspace_sizes[target],
    }


def _arguments(module: ExecutorFactoryModule) -> tuple[dict[str, Any], dict[str, Any]]:
    """The model's inputs and outputs by name."""
    if isinstance(module, AOTExecutorFactoryModule):
        interface = module.executor_codegen_metadata.interface
        inputs, outputs = [
            {t.name: {"dtype": str(t.dtype), "size": byte_size(t)} for t in tensors}
            for tensors in (interface.inputs, interface.outputs)
        ]
        return inputs, outputs
    assert isinstance(module, GraphExecutorFactoryModule)
    graph = json.loads(module.graph_json)
    dtypes, shapes = graph["attrs"]["dltype"][1], graph["attrs"]["shape"][1]

    def described(node: int, index: int = 0) -> dict[str, Any]:
        entry = graph["node_row_ptr"][node] + index
        return {"dtype": dtypes[entry], "size": _nbytes(dtypes[entry], shapes[entry])}

    names = {node: graph["nodes"][node]["name"] for node in graph["arg_nodes"]}
    heads = graph["heads"]
    results = ["output"] if len(heads) == 1 else [f"output{i}" for i in range(len(heads))]
    return (
        {name: described(node) for node, name in names.items() if name not in module.params},
        {name: described(*head[:2]) for name, head in zip(results, heads, strict=True)},
    )


def _nbytes(dtype: str, shape: Sequence[int]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return bytes_of_elements(count, as_dtype(dtype))
