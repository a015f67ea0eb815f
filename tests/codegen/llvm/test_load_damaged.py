"""Damaged files of LLVM text and bitcode are rejected, whatever LLVM does on them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tvm
from tvm import te
from tvm.error import TVMError


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1)
    module = tvm.build(te.create_schedule(b.op), [a, b], "llvm", name="add_one")
    folder = tmp_path_factory.mktemp("llvm")
    for suffix in ("ll", "bc"):
        module.save(str(folder / f"f.{suffix}"))
    return folder


@pytest.mark.parametrize("suffix", ["ll", "bc"])
def test_damaged_files_are_rejected_or_loaded(saved: Path, tmp_path: Path, suffix: str) -> None:
    data = (saved / f"f.{suffix}").read_bytes()
    drawn = random.Random(3)
    rejected = 0
    for _ in range(6):
        damaged = bytearray(data)
        for _ in range(8):
            damaged[drawn.randrange(len(damaged))] = drawn.randrange(256)
        path = tmp_path / f"f.{suffix}"
        path.write_bytes(damaged[: drawn.randrange(len(damaged) // 2, len(damaged))])
        try:
            tvm.runtime.load_module(path)
        except TVMError as error:
            assert "cannot load module" in str(error)
            rejected += 1
    assert rejected > 0


def test_bitcode_on_which_llvm_ends_the_process_is_rejected(saved: Path, tmp_path: Path) -> None:
    data = (saved / "f.bc").read_bytes()
    path = tmp_path / "f.bc"
    for size in (4, 20, 100, len(data) // 2, len(data) - 8):
        path.write_bytes(data[:size])
        with pytest.raises(TVMError, match="LLVM rejects it"):
            tvm.runtime.load_module(path)


def test_damaged_bitcode_to_be_linked_in_is_rejected(saved: Path, tmp_path: Path) -> None:
    data = bytearray((saved / "f.bc").read_bytes())
    for i in range(40, len(data), 97):
        data[i] ^= 0x5A
    path = tmp_path / "broken.bc"
    path.write_bytes(data)
    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1)
    schedule = te.create_schedule(b.op)
    schedule[b].pragma(b.op.axis[0], "import_llvm", str(path))
    with pytest.raises(TVMError, match="import_llvm"):
        tvm.build(schedule, [a, b], "llvm")
