"""The page of HTML that tells what tuning has brought; it needs no other file, and no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tvm.support.standalone_page import compressed, standalone_page

if TYPE_CHECKING:
    from tvm.driver.tvmc.tuning_report import TaskReport
    from tvm.utils.roofline.roof import Roof

_WIDTH, _HEIGHT = 360, 90
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2733; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.1rem; margin: 2.5rem 0 .3rem; overflow-wrap: anywhere }
table { border-collapse: collapse; width: 100% } th, td { padding: .3rem .6rem; text-align: right;
  border-bottom: 1px solid #d8dee6; font-variant-numeric: tabular-nums }
th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere }
th { border-bottom: 2px solid #1c2733; font-weight: 600 }
svg { display: block; margin: .5rem 0 } .best { fill: none; stroke: #0b6bcb; stroke-width: 2 }
.trial { fill: #8fa3b8 } .untuned { stroke: #c4320a; stroke-dasharray: 4 3 }
.note { color: #53657a } pre { background: #f4f6f9; padding: .8rem; overflow-x: auto;
  font-size: 12.5px; line-height: 1.4 } summary { cursor: pointer; color: #0b6bcb }
@media (prefers-color-scheme: dark) { body { background: #12181f; color: #dce4ec }
  pre { background: #1b242e } th, td { border-color: #2f3c4a } .note { color: #93a5b8 } }
"""


def page(tasks: Sequence[TaskReport], roof: Roof | None, name: str, records: bytes) -> str:
    """The page.

    Parameters
    ----------
    tasks : list of TaskReport
        What is told of each task.
    roof : Roof, optional
        What the machine can do at most.
    name : str
        The name of the file of records, which is attached.
    records : bytes
        Its content.
    """
    attached = compressed(records)
    rows = "".join([_row(number, task, roof) for number, task in enumerate(tasks)])
    sections = "".join([_section(number, task) for number, task in enumerate(tasks)])
    body = f"""<h1>Tuning report</h1>
<p>{_summary(tasks)}</p>
<p class="note">{_roof_text(roof)}</p>
<table>
<tr><th>Kernel<th>Calls<th>Trials<th>Failed<th>Untuned, ms<th>Best, ms<th>Gain<th>GFLOPS<th>Of roofline</tr>
{rows}</table>
<p><a download="{escape(name)}.gz" href="data:application/gzip;base64,{attached}">Records
({len(records):,} bytes, compressed)</a></p>
{sections}"""
    return standalone_page("Tuning report", _STYLE, body)


def _summary(tasks: Sequence[TaskReport]) -> str:
    trials = sum([len(task.seconds) for task in tasks])
    failed = sum([sum(task.failures.values()) for task in tasks])
    text = f"{len(tasks)} kernels, {trials} trials, {failed} of them failed."
    known = [
        (task.weight * task.untuned, task.weight * task.used)
        for task in tasks
        if task.untuned is not None and task.used is not None
    ]
    if not known:
        return text
    before, after = (sum(part) for part in zip(*known, strict=True))
    return (
        f"{text} Kernels measured before and after take {before * 1e3:.3f} ms untuned and "
        f"{after * 1e3:.3f} ms tuned: {before / after:.2f} times as fast."
    )


def _roof_text(roof: Roof | None) -> str:
    if roof is None:
        return "The roofline is that of another machine, and is not shown."
    return (
        f"Roofline of this machine: {roof.flops / 1e9:.0f} GFLOPS, {roof.bandwidth / 1e9:.1f} GB/s. "
        "Bytes are those of arguments; what the caches keep between calls may exceed it."
    )


def _row(number: int, task: TaskReport, roof: Roof | None) -> str:
    best, untuned, used = task.best, task.untuned, task.used
    gain = f"{untuned / used:.2f}" if untuned and used else "–"
    speed = f"{task.flop / used / 1e9:.1f}" if used else "–"
    share = f"{100 * roof.seconds(task.flop, task.bytes) / used:.0f} %" if roof and used else "–"
    failed = ", ".join([f"{count} {kind}" for kind, count in task.failures.most_common()]) or "0"
    return (
        f'<tr><td><a href="#t{number}">{escape(task.name)}</a><td>{task.weight:g}'
        f"<td>{len(task.seconds)}<td>{escape(failed)}<td>{_ms(untuned)}<td>{_ms(best)}"
        f"<td>{gain}<td>{speed}<td>{share}</tr>\n"
    )


def _ms(seconds: float | None) -> str:
    return "–" if seconds is None else f"{seconds * 1e3:.4g}"


def _section(number: int, task: TaskReport) -> str:
    schedule = (
        f"<details><summary>Fastest schedule</summary><pre>{escape(task.schedule)}</pre></details>"
        if task.schedule
        else '<p class="note">No candidate has run.</p>'
    )
    kept = (
        '<p class="note">The untuned kernel is faster, and stays.</p>'
        if task.best is not None and task.untuned is not None and task.untuned < task.best
        else ""
    )
    title = f'<h2 id="t{number}">{escape(task.name)}</h2>'
    return f"{title}{_chart(task)}{kept}{schedule}\n"


def _chart(task: TaskReport) -> str:
    """Operations a second of each trial, and of the fastest so far; the untuned kernel is dashed."""
    speeds = [0.0 if s is None else task.flop / s / 1e9 for s in task.seconds]
    untuned = task.flop / task.untuned / 1e9 if task.untuned else 0.0
    top = max([*speeds, untuned])
    if not speeds or top <= 0:
        return ""

    def x(place: int) -> float:
        return _WIDTH * (place + 0.5) / len(speeds)

    def y(speed: float) -> float:
        return _HEIGHT * (1 - 0.95 * speed / top)

    best = 0.0
    points = []
    for place, speed in enumerate(speeds):
        best = max(best, speed)
        points.append(f"{x(place):.1f},{y(best):.1f}")
    dots = "".join(
        [
            f'<circle class="trial" cx="{x(place):.1f}" cy="{y(speed):.1f}" r="1.6"/>'
            for place, speed in enumerate(speeds)
        ]
    )
    line = (
        f'<line class="untuned" x1="0" x2="{_WIDTH}" y1="{y(untuned):.1f}" y2="{y(untuned):.1f}"/>'
    )
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="GFLOPS by trial, best {best:.1f}">'
        f'{dots}<polyline class="best" points="{" ".join(points)}"/>{line * bool(untuned)}</svg>'
        f'<p class="note">{len(speeds)} trials, best {max(speeds):.1f} GFLOPS'
        f"{f', untuned {untuned:.1f}' if untuned else ''}</p>"
    )
