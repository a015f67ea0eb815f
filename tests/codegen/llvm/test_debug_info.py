"""Line numbers of compiled code: they lead to the text of the lowered program."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tvm
from tests.system_tools import needs_tool
from tvm import knobs, te


def build_sum(folder: Path, parallel: bool = False) -> tvm.runtime.Module:
    a = te.placeholder((64, 64), name="a")
    doubled = te.compute((64, 64), lambda i, j: a[i, j] * 2, name="doubled")
    b = te.compute((64, 64), lambda i, j: te.exp(doubled[i, j]), name="b")
    s = te.create_schedule(b.op)
    if parallel:
        s[b].parallel(b.op.axis[0])
    with knobs.DEBUG_INFO.scope(folder):
        return tvm.build(s, [a, b], "llvm -opt-level=1", name="kernel")


def source_lines(folder: Path) -> list[str]:
    (path,) = folder.glob("kernel-*.tir")
    return path.read_text().splitlines()


@pytest.mark.parametrize("parallel", [False, True])
def test_instructions_have_the_lines_of_their_statements(tmp_path: Path, parallel: bool) -> None:
    module = build_sum(tmp_path, parallel)
    text, lines = module.get_source("unoptimized"), source_lines(tmp_path)
    locations = dict(re.findall(r"!(\d+) = !DILocation\(line: (\d+),", text))
    stores = re.findall(r"store float .*!dbg !(\d+)", text)
    assert stores
    for number in stores:
        assert re.search(r"\] = ", lines[int(locations[number]) - 1])
    products = re.findall(r"fmul .*!dbg !(\d+)", text)
    assert any(["T.float32(2" in lines[int(locations[number]) - 1] for number in products])


def test_code_with_line_numbers_computes_the_same(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(64, 64)).astype("float32")
    out = tvm.nd.array(np.zeros_like(x))
    build_sum(tmp_path, parallel=True)(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), np.exp(x * 2), rtol=1e-6)


def test_without_the_knob_there_is_no_debug_information() -> None:
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    text = tvm.build(te.create_schedule(b.op), [a, b], "llvm").get_source("unoptimized")
    assert "!dbg" not in text and "!DICompileUnit" not in text


@pytest.mark.parametrize("tool", [pytest.param("addr2line", marks=needs_tool("addr2line", "nm"))])
def test_addresses_of_a_library_lead_to_lines(tmp_path: Path, tool: str) -> None:
    library = tmp_path / "kernel.so"
    build_sum(tmp_path).export_library(str(library))
    symbols = subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout
    address = re.search(r"^(\w+) T kernel$", symbols, re.MULTILINE)[1]
    found = subprocess.run(
        [tool, "-f", "-e", library, address], capture_output=True, text=True, check=True
    ).stdout
    name, place = found.splitlines()
    assert name == "kernel" and re.search(r"/kernel-\w+\.tir:\d+", place)
    assert "def kernel(" in "\n".join(source_lines(tmp_path))
