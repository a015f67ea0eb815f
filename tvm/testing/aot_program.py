"""The program in C around models that were compiled ahead of time: its text, its run, its results."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm.error import TVMError
from tvm.micro import export_model_library_format
from tvm.relay.backend.name_transforms import sanitize
from tvm.support.dtype import dtype as as_dtype

if TYPE_CHECKING:
    from .aot import AOTDataLinkage, AOTTestModel, AOTTestRunner

_COMPILER = ("gcc", "-std=gnu99", "-O1")
_C_TYPES = {"float32": "float", "float64": "double", "bool": "uint8_t"} | {
    f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_RESULT = "result "  # before the name and the elements of an output


def write_program(
    models: Sequence[tuple[AOTTestModel, Any]],
    runner: AOTTestRunner,
    interface_api: str,
    linkage: AOTDataLinkage | None,
    folder: Path,
) -> Path:
    """Write and compile the program.

    Parameters
    ----------
    models : with what they were compiled to.
    interface_api : how they are called: "c" or "packed".
    linkage : of the arrays that the models are given.
    """
    folder.mkdir(parents=True, exist_ok=True)
    archive = export_model_library_format([m for _, m in models], folder / "models.tar")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    takes_pointers = {m.name for m, built in models if built.executor.flag("unpacked-api")}
    writer = _ProgramWriter(interface_api, linkage, takes_pointers)
    (folder / "main.c").write_text(writer.text([m for m, _ in models], runner))
    host = folder / "codegen" / "host"
    files = [
        folder / "main.c",
        *sorted(host.glob("src/*.c")),
        *sorted(folder.glob("runtime/src/*.c")),
        *sorted(host.glob("lib/*.o")),
    ]
    includes = [f"-I{folder / 'runtime' / 'include'}", f"-I{host / 'include'}"]
    command = [*_COMPILER, *includes, *map(str, files), "-o", str(folder / "program"), "-lm"]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        raise TVMError(f"the C compiler rejected the program:\n{made.stderr[-4000:]}")
    return folder / "program"


def run_program(program: Path) -> tuple[str, dict[str, np.ndarray[Any, Any]]]:
    """What the program prints, and the outputs among it by the names of models and outputs."""
    run = subprocess.run([str(program)], capture_output=True, text=True)
    if run.returncode:
        raise TVMError(f"the program ended with status {run.returncode}:\n{run.stdout}{run.stderr}")
    results = {}
    for line in run.stdout.splitlines():
        if line.startswith(_RESULT):
            name, *items = line.removeprefix(_RESULT).split()
            numbers = [float(i) if {"n", ".", "e"} & set(i) else int(i) for i in items]
            results[name] = np.array(numbers)
    return run.stdout, results


class _ProgramWriter:
    def __init__(
        self, interface_api: str, linkage: AOTDataLinkage | None, takes_pointers: set[str]
    ) -> None:
        if interface_api not in ("c", "packed"):
            raise TVMError(f"interface_api must be c or packed, got {interface_api!r}")
        self.is_packed = interface_api == "packed"
        self.takes_pointers = takes_pointers  # names of models
        self.place = "__attribute__((aligned(64)))"
        if linkage is not None:
            aligned = max(linkage.alignment, 64)
            self.place = f'__attribute__((section("{linkage.section}"), aligned({aligned})))'

    def text(self, models: Sequence[AOTTestModel], runner: AOTTestRunner) -> str:
        """The whole program."""
        headers = ["inttypes.h", "stdint.h", "stdio.h", "tvm/runtime/c_runtime_api.h"]
        if not self.is_packed:
            headers += [f"tvmgen_{model.name}.h" for model in models]
        return "\n".join(
            [
                *[f"#include <{header}>" for header in headers],
                *[f'#include "{header}"' for header in runner.includes],
                *[self._arrays(model) for model in models],
                "int main(void) {",
                runner.prologue,
                *[self._call(model) for model in models],
                runner.epilogue,
                "  return 0;",
                "}",
                "",
            ]
        )

    def _arrays(self, model: AOTTestModel) -> str:
        lines = []
        for name, value in model.inputs.items():
            lines.append(self._array(_symbol(model, "in", name), np.asarray(value), True))
        for name, value in model.outputs.items():
            lines.append(self._array(_symbol(model, "out", name), np.asarray(value), False))
        return "\n".join(lines)

    def _array(self, symbol: str, value: np.ndarray[Any, Any], is_given: bool) -> str:
        kind = str(value.dtype)
        if kind not in _C_TYPES:
            raise TVMError(f"programs around models have no arrays of {kind}")
        items = ", ".join([_literal(v) for v in value.reshape(-1).tolist()]) if is_given else "0"
        size = max(value.size, 1)
        return f"static {self.place} {_C_TYPES[kind]} {symbol}[{size}] = {{{items or '0'}}};"

    def _call(self, model: AOTTestModel) -> str:
        write = _struct_call
        if self.is_packed:
            write = _pointer_call if model.name in self.takes_pointers else _packed_call
        call = write(model)
        return "\n".join(["  {", call, *[_print(model, n, v) for n, v in model.outputs.items()], "  }"])  # fmt: skip


def _packed_call(model: AOTTestModel) -> str:
    """The model's function, given tensors."""
    name = f"tvmgen_{model.name}___tvm_main__"
    values = _arguments(model)
    lines = [f"    int32_t {name}(TVMValue*, int32_t*, int32_t, TVMValue*, int32_t*, void*);"]
    for i, (kind, key, value) in enumerate(values):
        dtype = as_dtype(str(value.dtype))
        shape = ", ".join(map(str, value.shape)) or "0"
        lines += [
            f"    int64_t shape{i}[] = {{{shape}}};",
            f"    DLTensor tensor{i} = {{{_symbol(model, kind, key)}, {{kDLCPU, 0}}, {value.ndim}, "
            f"{{{_code(dtype)}, {dtype.bits}, 1}}, shape{i}, NULL, 0}};",
        ]
    tensors = ", ".join([f"{{.v_handle = &tensor{i}}}" for i in range(len(values))])
    codes = ", ".join(["kTVMDLTensorHandle"] * len(values))
    return "\n".join(
        [
            *lines,
            f"    TVMValue values[] = {{{tensors}}};",
            f"    int32_t codes[] = {{{codes}}};",
            "    TVMValue result;",
            "    int32_t result_code;",
            f"    if ({name}(values, codes, {len(values)}, &result, &result_code, NULL) != 0) return 1;",
        ]
    )


def _pointer_call(model: AOTTestModel) -> str:
    """The model's function, given pointers."""
    name = f"tvmgen_{model.name}___tvm_main__"
    symbols = [_symbol(model, kind, key) for kind, key, _ in _arguments(model)]
    kinds = ", ".join(["void*"] * len(symbols))
    return f"    int32_t {name}({kinds});\n    if ({name}({', '.join(symbols)}) != 0) return 1;"


def _arguments(model: AOTTestModel) -> list[tuple[str, str, np.ndarray[Any, Any]]]:
    """Inputs, then outputs: which it is, the name, the value."""
    inputs = [("in", n, np.asarray(v)) for n, v in model.inputs.items()]
    return inputs + [("out", n, np.asarray(v)) for n, v in model.outputs.items()]


def _struct_call(model: AOTTestModel) -> str:
    """The model's function, given structs of pointers."""
    ins = ", ".join([f".{sanitize(n)} = {_symbol(model, 'in', n)}" for n in model.inputs])
    outs = ", ".join([f".{sanitize(n)} = {_symbol(model, 'out', n)}" for n in model.outputs])
    name = f"tvmgen_{model.name}"
    return "\n".join(
        [
            f"    struct {name}_inputs inputs = {{{ins}}};",
            f"    struct {name}_outputs outputs = {{{outs}}};",
            f"    if ({name}_run(&inputs, &outputs) != 0) return 1;",
        ]
    )


def _print(model: AOTTestModel, name: str, value: np.ndarray[Any, Any]) -> str:
    symbol = _symbol(model, "out", name)
    is_float = value.dtype.kind == "f"
    form, cast = ('"%.17g"', "(double)") if is_float else ('"%" PRId64', "(int64_t)")
    if value.dtype == np.uint64:
        form, cast = '"%" PRIu64', "(uint64_t)"
    return (
        f'    printf("\\n{_RESULT}{model.name}.{name}");\n'
        f'    for (int64_t i = 0; i < {value.size}; ++i) printf(" " {form}, {cast}{symbol}[i]);\n'
        '    printf("\\n");'
    )


def _symbol(model: AOTTestModel, kind: str, name: str) -> str:
    return f"{model.name}_{kind}_{sanitize(name)}"


def _literal(value: Any) -> str:
    if isinstance(value, float):
        if not np.isfinite(value):
            return "0.0 / 0.0" if value != value else f"{'-' if value < 0 else ''}1.0 / 0.0"
        return value.hex()
    return (
        f"({value + 1}LL - 1)"
        if value == -(1 << 63)
        else f"{int(value)}{'ULL' if value >= 1 << 63 else ''}"
    )


def _code(dtype: Any) -> int:
    return 2 if dtype.is_float else int(not dtype.is_int)
