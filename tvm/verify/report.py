"""What a verification found, in words and in files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tvm.support.files import replacing, write_text

from .blame import Verdict
from .compare import Difference
from .search import Reproducer


@dataclass(frozen=True)
class Row:
    """One tensor: who computes it, how far it is off, and the difference if that is too far."""

    name: str
    node: str
    operator: str
    error: float
    difference: Difference | None


@dataclass
class Report:
    """What a verification found.

    Attributes
    ----------
    title : str
        What was compared with what.
    rows : list of Row
        All tensors that were compared, in order.
    skipped : list of str
        Tensors that were not: random numbers, and what is no tensor.
    outputs : dict of str to Difference
        The model's outputs that differ, compiled as they are.
    first : Row
        The first tensor that differs.
    reproducer : Reproducer
        The nodes that show it.
    verdict : Verdict
        What is to blame.
    files : dict of str to str
        What was written, by what it is.
    options : tuple of str
        Options of `tvmc verify` that compare the reproducer in the same way.
    """

    title: str
    rows: Sequence[Row]
    skipped: Sequence[str]
    outputs: Mapping[str, Difference]
    first: Row | None = None
    reproducer: Reproducer | None = None
    verdict: Verdict | None = None
    files: dict[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether all tensors agree."""
        return self.first is None

    @property
    def largest_error(self) -> float:
        """The largest error of all tensors, as a share of the tensor's largest element."""
        return max((row.error for row in self.rows), default=0.0)

    def __str__(self) -> str:
        wrong = [row for row in self.rows if row.difference is not None]
        lines = [self.title, f"{len(self.rows)} tensors compared, {len(wrong)} differ"]
        if self.skipped:
            lines[-1] += f" ({len(self.skipped)} left out: random, or no tensors)"
        if self.first is None:
            return "\n".join([*lines, f"all agree, the largest error is {self.largest_error:.2g}"])
        lines += [f"output {name!r}: {difference}" for name, difference in self.outputs.items()]
        first = self.first
        lines.append(f"first divergence: {first.name!r}, {first.operator} {first.node}".rstrip())
        lines.append(f"  {first.difference}")
        if self.reproducer is not None:
            nodes = [node.op_type for node in self.reproducer.model.graph.node]
            lines.append(f"  shown by {len(nodes)} nodes alone: {', '.join(nodes[:8])}"
                         + (", ..." if len(nodes) > 8 else ""))  # fmt: skip
        if self.verdict is not None:
            lines.append(f"to blame: {self.verdict.text}")
        lines += [f"{what}: {path}" for what, path in self.files.items()]
        return "\n".join(lines)

    def table(self) -> str:
        """All tensors with their errors."""
        texts = [
            (f"{row.error:.2e}", "differs" if row.difference else "", row.operator, row.name)
            for row in self.rows
        ]
        width = max((len(text[2]) for text in texts), default=0)
        return "\n".join(f"{e:>9} {d:8}{o:{width}}  {n}" for e, d, o, n in texts)

    def write(self, folder: str | PathLike[str]) -> None:
        """Write the reproducer with its inputs and expected output, and the programs in question."""
        root = Path(folder)
        if self.reproducer is None:
            return
        root.mkdir(parents=True, exist_ok=True)
        with replacing(root / "reproducer.onnx") as new:
            onnx.save(self.reproducer.model, new)
        _save_arrays(root / "inputs.npz", self.reproducer.inputs)
        _save_arrays(root / "expected.npz", {self.reproducer.output: self.reproducer.expected})
        self.files["reproducer"] = str(root / "reproducer.onnx")
        for name, text in (
            ("before", self.verdict.before if self.verdict else ""),
            ("after", self.verdict.after if self.verdict else ""),
        ):
            if text:
                write_text(root / f"{name}.txt", text)
                self.files[f"program {name}"] = str(root / f"{name}.txt")
        self.files["once more"] = shlex.join([
            "tvmc", "verify", str(root / "reproducer.onnx"), "--inputs", str(root / "inputs.npz"),
            *self.options,
        ])  # fmt: skip


def _save_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    # types that numpy does not know are kept as they lie in memory, which `verify` takes again
    plain = {n: v.view(f"u{v.itemsize}") if v.dtype.kind == "V" else v for n, v in arrays.items()}
    with replacing(path) as new:
        np.savez(new, **plain)
