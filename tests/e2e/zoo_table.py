"""What became of the zoo's models: a log of JSON lines, and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

WAYS = {"traced": "`torch.jit.trace`", "exported": "`torch.export`"}


@dataclass(frozen=True)
class Outcome:
    """How far one model's outputs are from PyTorch's, relative to the largest of them."""

    name: str
    way: str
    worst: float
    limit: float
    seconds: float
    reason: str = ""

    @property
    def agrees(self) -> bool:
        return self.worst <= self.limit

    def line(self) -> str:
        verdict = "ok  " if self.agrees else "FAIL"
        return f"{verdict} {self.name:30} {self.seconds:6.1f} s  {self.text()}"

    def text(self) -> str:
        """The difference, and the limit where it is a wider one."""
        if self.reason:
            return self.reason
        return f"{self.worst:.1e}" + (f" of {self.limit:.1e}" if self.limit > 1e-4 else "")

    def as_json(self) -> str:
        return json.dumps(asdict(self))


Outcomes = Mapping[tuple[str, str], Outcome]


def read_log(path: Path | None) -> Outcomes:
    """The last outcome of each model and way."""
    if path is None or not path.exists():
        return {}
    found = [Outcome(**json.loads(line)) for line in path.read_text().splitlines()]
    return {(outcome.name, outcome.way): outcome for outcome in found}


def write_table(path: Path, outcomes: Outcomes) -> None:
    """The outcomes as a page."""
    counts = [
        f"{sum(o.agrees for o in of_way)} of {len(of_way)} through {title}"
        for way, title in WAYS.items()
        if (of_way := [o for o in outcomes.values() if o.way == way])
    ]
    lines = [
        "# PyTorch models",
        "",
        "Written by `python -m tests.e2e.model_zoo --log LOG --table docs/pytorch_models.md` after",
        "runs with `--log LOG` and `--log LOG --exported`: architectures of torchvision and",
        "transformers and of papers, small, with random weights. The figures are the largest",
        "difference from PyTorch relative to the largest output; the limit is 1e-4, or eight times",
        "the model's own rounding error in float32 where that is more. An empty cell was not run.",
        "",
        f"These agree: {', '.join(counts)}.",
        "",
        f"| model | {' | '.join(WAYS.values())} |",
        "|---|---|---|",
    ]
    for name in sorted({name for name, _ in outcomes}):
        cells = [_cell(outcomes.get((name, way))) for way in WAYS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    path.write_text("\n".join(lines) + "\n")


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    text = outcome.text().replace("|", "\\|")
    return text if outcome.agrees else f"**differs**: {text}"
