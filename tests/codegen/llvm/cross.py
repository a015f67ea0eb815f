"""Programs for other processors: objects linked with a C main that calls packed functions, run by an emulator."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

import tvm


@dataclass(frozen=True)
class Platform:
    """A processor with the tools that make and run programs for it."""

    target: str
    compiler: str
    emulator: str
    sysroot: str


PLATFORMS = {
    "aarch64": Platform(
        "llvm -mtriple=aarch64-linux-gnu -mattr=+neon",
        "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu",
    ),
    "arm": Platform(
        "llvm -mtriple=armv7l-linux-gnueabihf -mattr=+neon,+vfp4 -mfloat-abi=hard",
        "arm-linux-gnueabihf-gcc", "qemu-arm", "/usr/arm-linux-gnueabihf",
    ),
    "riscv64": Platform(
        "llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+c -mabi=lp64d",
        "riscv64-linux-gnu-gcc", "qemu-riscv64", "/usr/riscv64-linux-gnu",
    ),
}  # fmt: skip

# Reads calls from a file, writes the arguments as they are afterwards; the runtime's functions are
# the least that kernels need: two tasks after each other, malloc, a text of the last error.
MAIN = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {{ int32_t type, id; }} Device;
typedef struct {{
  void* data; Device device; int32_t ndim; uint8_t code, bits; uint16_t lanes;
  int64_t *shape, *strides; uint64_t byte_offset;
}} Tensor;
typedef union {{ int64_t i; double f; void* p; }} Value;
typedef struct {{ void* sync; int32_t tasks; }} Group;
typedef int32_t (*Packed)(void*, int32_t*, int32_t, void*, int32_t*, void*);

extern int32_t {declarations};
static Packed kernels[] = {{ {names} }};

static void set_last_error(const char* text) {{ puts(text); }}
static int launch(int (*task)(int, Group*, void*), void* data, int count) {{
  Group group = {{ 0, count ? count : 2 }};
  for (int i = 0; i < group.tasks; ++i) if (task(i, &group, data)) return -1;
  return 0;
}}
static void* allocate(int type, int id, uint64_t size, int code, int bits) {{
  return aligned_alloc(64, (size + 63) / 64 * 64);
}}
static int release(int type, int id, void* data) {{ free(data); return 0; }}

void* __TVMAPISetLastError __attribute__((weak));
void* __TVMBackendParallelLaunch __attribute__((weak));
void* __TVMBackendAllocWorkspace __attribute__((weak));
void* __TVMBackendFreeWorkspace __attribute__((weak));

static void get(void* at, size_t size, FILE* file) {{ if (fread(at, 1, size, file) != size) exit(3); }}

int main(int argc, char** argv) {{
  __TVMAPISetLastError = set_last_error;
  __TVMBackendParallelLaunch = launch;
  __TVMBackendAllocWorkspace = allocate;
  __TVMBackendFreeWorkspace = release;
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  int32_t header[2];
  while (fread(header, 1, 8, in) == 8) {{
    Tensor tensors[8]; Value values[8]; int32_t codes[8]; size_t sizes[8];
    for (int i = 0; i < header[1]; ++i) {{
      Tensor* t = &tensors[i];
      memset(t, 0, sizeof(*t));
      t->device.type = 1;
      get(&t->code, 1, in); get(&t->bits, 1, in); get(&t->lanes, 2, in); get(&t->ndim, 4, in);
      t->shape = malloc(8 * t->ndim + 8);
      get(t->shape, 8 * t->ndim, in);
      sizes[i] = (t->bits + 7) / 8;
      for (int k = 0; k < t->ndim; ++k) sizes[i] *= t->shape[k];
      t->data = aligned_alloc(64, (sizes[i] + 64) / 64 * 64);
      get(t->data, sizes[i], in);
      values[i].p = t;
      codes[i] = 7;
    }}
    Value result; int32_t result_code;
    int32_t status = kernels[header[0]](values, codes, header[1], &result, &result_code, 0);
    fwrite(&status, 4, 1, out);
    for (int i = 0; i < header[1]; ++i) fwrite(tensors[i].data, 1, sizes[i], out);
  }}
  fclose(out);
  return 0;
}}
"""

Call = tuple[str, Sequence[np.ndarray]]


def run_calls(
    platform: Platform, mod: tvm.IRModule, calls: Sequence[Call], folder: Path
) -> tuple[list[tuple[int, list[np.ndarray]]], str]:
    """Status and arguments after each call of a function of ``mod``, and the printed errors."""
    tvm.build(mod, target=platform.target).save(str(folder / "kernels.o"))
    names = [gvar.name_hint for gvar in mod.functions]
    declarations = ", ".join(
        [f"{name}(void*, int32_t*, int32_t, void*, int32_t*, void*)" for name in names]
    )
    main = folder / "main.c"
    main.write_text(MAIN.format(declarations=declarations, names=", ".join(names)))
    program = folder / "program"
    command = [platform.compiler, "-O1", main, folder / "kernels.o", "-o", program, "-lm"]
    subprocess.run(command, check=True)
    numbers = {name: number for number, name in enumerate(names)}
    (folder / "in").write_bytes(b"".join([_call_bytes(numbers, *call) for call in calls]))
    found = subprocess.run(
        [platform.emulator, "-L", platform.sysroot, program, folder / "in", folder / "out"],
        check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    return _results((folder / "out").read_bytes(), calls), found.stdout


_CODES = {"i": 0, "u": 1, "f": 2}


def _call_bytes(numbers: Mapping[str, int], name: str, arrays: Sequence[np.ndarray]) -> bytes:
    parts = [struct.pack("<ii", numbers[name], len(arrays))]
    for a in arrays:
        code = 4 if a.dtype == ml_dtypes.bfloat16 else _CODES[a.dtype.kind]
        parts.append(struct.pack("<BBHi", code, a.itemsize * 8, 1, a.ndim))
        parts += [struct.pack(f"<{a.ndim}q", *a.shape), np.ascontiguousarray(a).tobytes()]
    return b"".join(parts)


def _results(data: bytes, calls: Sequence[Call]) -> list[tuple[int, list[np.ndarray]]]:
    found, at = [], 0
    for _, arrays in calls:
        (status,) = struct.unpack_from("<i", data, at)
        at += 4
        after = []
        for a in arrays:
            after.append(np.frombuffer(data, a.dtype, a.size, at).reshape(a.shape))
            at += a.nbytes
        found.append((status, after))
    return found
