"""Programs in C around exported models: unpacked, compiled by a plain C compiler, run."""

from __future__ import annotations

import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

import tvm.micro

STRICT = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror"]
C_TYPES = {"float32": "float", "int32": "int32_t", "int8": "int8_t", "uint8": "uint8_t"}


def unpacked(modules: object, folder: Path) -> Path:
    """The archive of a model, taken apart in a folder."""
    archive = tvm.micro.export_model_library_format(modules, folder / "model.tar")
    with tarfile.open(archive) as tar:
        tar.extractall(folder / "mlf", filter="data")
    return folder / "mlf"


def compile_program(tree: Path, main: str, options: Sequence[str] = ()) -> Path:
    """Compile the model, the runtime of the archive and a program."""
    (tree / "main.c").write_text(main)
    host = tree / "codegen" / "host"
    sources = [*sorted(host.glob("src/*.c")), *sorted(tree.glob("runtime/src/*.c"))]
    objects = sorted(host.glob("lib/*.o"))
    includes = [f"-I{tree / 'runtime' / 'include'}", f"-I{host / 'include'}"]
    command = [
        "gcc",
        *STRICT,
        *options,
        *includes,
        *map(str, [*sources, tree / "main.c", *objects]),
    ]
    subprocess.run([*command, "-o", str(tree / "program"), "-lm"], check=True)
    return tree / "program"


def run_program(program: Path) -> list[np.ndarray]:
    """The arrays that a program prints, one a line."""
    text = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout
    return [np.array(line.split(), "float64") for line in text.splitlines()]


def definition(name: str, value: np.ndarray) -> str:
    """A C array that holds the value."""
    items = ", ".join([repr(item) for item in value.reshape(-1).tolist()])
    aligned = "__attribute__((aligned(64)))"
    return f"static {aligned} {C_TYPES[str(value.dtype)]} {name}[] = {{{items}}};\n"


def main_text(
    inputs: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    name: str = "default",
    pools: Mapping[str, str] | None = None,
) -> str:
    """A program that runs a model through its C interface and prints the outputs.

    `pools` are definitions of arrays by their names, which the model gets as memory.
    """
    sets = [f".{key} = {key}" for key in inputs]
    results = [f".{key} = {key}" for key in outputs]
    prints = [
        f'  for (int i = 0; i < {value.size}; ++i) printf("%.9g ", (double){key}[i]);\n'
        '  printf("\\n");\n'
        for key, value in outputs.items()
    ]
    given = [f".{key} = {key}" for key in pools or {}]
    memory = f"  struct tvmgen_{name}_workspace_pools pools = {{{', '.join(given)}}};\n"
    return "".join(
        [
            f"#include <stdio.h>\n#include <tvmgen_{name}.h>\n",
            *[definition(key, value) for key, value in inputs.items()],
            *[definition(key, np.zeros_like(value)) for key, value in outputs.items()],
            *(pools or {}).values(),
            "int main(void) {\n",
            f"  struct tvmgen_{name}_inputs in = {{{', '.join(sets)}}};\n",
            f"  struct tvmgen_{name}_outputs out = {{{', '.join(results)}}};\n",
            memory if pools else "",
            f"  if (tvmgen_{name}_run(&in, &out{', &pools' if pools else ''}) != 0) return 1;\n",
            *prints,
            "  return 0;\n}\n",
        ]
    )
