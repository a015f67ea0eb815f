"""The kernels of a program: their forms from te to assembly, and what was chosen for them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from tvm import knobs
from tvm.codegen import build_module
from tvm.codegen.llvm.compilation import compile_unsplit
from tvm.codegen.llvm.library import llvm_lock
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.support.workers import share_out, usual_processes
from tvm.target import Target
from tvm.tir import PrimFunc
from tvm.tir.analysis import calculate_workspace_bytes, estimate_tir_flops
from tvm.tir.pipeline import is_launched, lower_for_host
from tvm.topi.choice import Choice as NotedChoice

from .lines import assembly_lines, llvm_lines, stage_lines
from .program import KernelSource, Program
from .record import Candidate, Choice, Code, Kernel
from .te_text import te_text

_MOST_CANDIDATES = 24
_ALIGNMENT = 64
_NO_SCHEDULE = "the kernel has no te schedule"
_NO_LINES = "code for this target carries no line numbers: its lines cannot be linked"


def kernel_records(program: Program, lowering: Mapping[str, float]) -> list[Kernel]:
    """What is known of the kernels before they run.

    Parameters
    ----------
    program : Program
        The program.
    lowering : dict of str to float
        Seconds of lowering by the name of the kernel.
    """
    found: list[Kernel] = []
    for kernel in program.kernels:
        record = Kernel(kernel.name, list(kernel.operators))
        record.flops = float(estimate_tir_flops(kernel.func))
        record.workspace = int(calculate_workspace_bytes(kernel.func, _ALIGNMENT))
        record.choices = [_choice(c) for c in kernel.choices]
        if kernel.name in lowering:
            record.compile_seconds["lowering"] = lowering[kernel.name]
        found.append(record)
    with TemporaryDirectory(prefix="tvm-explain-") as folder:
        items = [(k, program.target, Path(folder) / str(i)) for i, k in enumerate(program.kernels)]
        share_out(_write_forms, items, usual_processes(), llvm_lock())
        for record, item in zip(found, items, strict=True):
            if not (item[2] / "forms.json").exists():
                _write_forms(item)
            forms = json.loads((item[2] / "forms.json").read_text())
            record.codes = [Code(**code) for code in forms["codes"]]
            record.compile_seconds |= forms["seconds"]
    return found


def _choice(choice: NotedChoice) -> Choice:
    shown = [Candidate(str(c), cost) for c, cost in choice.candidates[:_MOST_CANDIDATES]]
    return Choice(
        str(choice.tile), choice.share, choice.origin.value, shown, len(choice.candidates)
    )


def _write_forms(item: tuple[KernelSource, Target, Path]) -> None:
    """Leave a kernel's forms in a folder, where another process finds them."""
    kernel, target, folder = item
    folder.mkdir(exist_ok=True)
    seconds: dict[str, float] = {}
    codes = kernel_codes(kernel, target, folder, seconds)
    text = json.dumps({"codes": [asdict(code) for code in codes], "seconds": seconds})
    unfinished = folder / "unfinished"
    unfinished.write_text(text)
    unfinished.rename(folder / "forms.json")


def kernel_codes(
    kernel: KernelSource, target: Target, folder: Path, seconds: dict[str, float]
) -> list[Code]:
    """The forms of a kernel; what each took to make is added to `seconds`."""
    text, first = ("", {}) if kernel.schedule is None else te_text(kernel.schedule)
    te = Code("te", text, note="" if text else _NO_SCHEDULE)
    mod = IRModule({kernel.name: kernel.func})
    hosted = target.hosted()
    with knobs.DEBUG_INFO.scope(folder):
        lowered = lower_for_host(mod, hosted)
        if target.kind.name == "llvm":
            return [te, *_cpu_codes(kernel, lowered, target, folder, first, seconds)]
    return [te, *_source_codes(lowered, target, first, seconds)]


def _cpu_codes(
    kernel: KernelSource,
    lowered: IRModule,
    target: Target,
    folder: Path,
    first: Mapping[str, int],
    seconds: dict[str, float],
) -> list[Code]:
    start = time.perf_counter()
    compiled = compile_unsplit(lowered, target)
    llvm = str(compiled.source("ll"))
    middle = time.perf_counter()
    assembly = str(compiled.source("asm"))
    seconds |= {"LLVM": middle - start, "assembly": time.perf_counter() - middle}
    tir = "\n".join([path.read_text().rstrip() for path in sorted(folder.glob("*.tir"))])
    return [
        Code("tir", tir, stage_lines(tir, first)),
        Code("llvm", *llvm_lines(llvm, kernel.name)),
        Code("assembly", *assembly_lines(assembly, kernel.name)),
    ]


def _source_codes(
    lowered: IRModule, target: Target, first: Mapping[str, int], seconds: dict[str, float]
) -> list[Code]:
    """The loops and the text of targets whose code is a text; of GPUs what the device runs."""
    functions = {v: f for v, f in lowered.functions.items() if isinstance(f, PrimFunc)}
    launched = {v: f for v, f in functions.items() if is_launched(f)}
    functions = launched or functions
    tir = "\n".join([func.script().rstrip() for func in functions.values()])
    codes = [Code("tir", tir, stage_lines(tir, first))]
    start = time.perf_counter()
    try:
        source = build_module(lowered.with_functions(functions), target).get_source()
    except TVMError as error:
        return [*codes, Code(target.kind.name, "", note=str(error))]
    seconds[target.kind.name] = time.perf_counter() - start
    return [*codes, Code(target.kind.name, str(source), note=_NO_LINES)]


def slowest(kernels: Sequence[Kernel], count: int) -> list[str]:
    """The names of the kernels that take most of the time, or of most of the work if nothing was measured."""
    order = sorted(kernels, key=lambda k: (-k.seconds, -k.flops * k.calls))
    return [kernel.name for kernel in order[:count]]
