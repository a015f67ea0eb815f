"""Tensor expression debug display: drawings of schedules in the language of Graphviz, and as text.

    print(tedd.viz_schedule_tree(s, output_dot_string=True))      # stages inside the loops of others
    tedd.viz_itervar_relationship_graph(s, dot_file_path="/tmp/axes.dot")
    tedd.viz_dataflow_graph(s, show_svg=True)                     # in a notebook
    print(tedd.schedule_tree_text(s))

Drawings need nothing but this module; only ``show_svg`` needs the packages graphviz and IPython.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from itertools import pairwise

from tvm.error import TVMError
from tvm.support.files import write_text
from tvm.te import Schedule
from tvm.te.schedule import AttachType, InferBound, Stage
from tvm.tir.expr import IterVar, Range

_COLORS = {
    "DataPar": "#FFFFFF",
    "ThreadIndex": "#2980B9",
    "CommReduce": "#FAD7A0",
    "Ordered": "#D35400",
    "DimInfo": "#FFFF00",
    "Unrolled": "#D2B4DE",
    "Vectorized": "#AED6F1",
    "Parallelized": "#F5B7B1",
    "Tensorized": "#A9DFBF",
}


def viz_schedule_tree(
    sch: Schedule,
    show_svg: bool = False,
    dot_file_path: str = "",
    output_dot_string: bool = False,
) -> str | None:
    """Draw where each stage runs: its loops, and the loop inside which it is computed.

    Parameters
    ----------
    sch : Schedule
    show_svg : bool
        Show the drawing in a notebook.
    dot_file_path : str
        Where to write the drawing, if anywhere.
    output_dot_string : bool
        Return the drawing.
    """
    drawing = _Drawing(sch, "Schedule Tree")
    drawing.lines.append('  ROOT [label="ROOT", shape=box];')
    for stage in drawing.stages:
        drawing.stage(stage)
    for stage in drawing.stages:
        source, target = drawing.id_of(stage), _attach_point(drawing, stage)
        if target is not None:
            drawing.lines.append(f"  {source} -> {target};")
    return dump_graph(drawing.text(), show_svg, dot_file_path, output_dot_string)


def viz_itervar_relationship_graph(
    sch: Schedule,
    show_svg: bool = False,
    dot_file_path: str = "",
    output_dot_string: bool = False,
) -> str | None:
    """Draw how the loops of each stage come from its axes; parameters of :func:`viz_schedule_tree`."""
    drawing = _Drawing(sch, "IterVar Relationship Graph")
    for stage in drawing.stages:
        inside = [drawing.node(iv, stage) for iv in stage.all_iter_vars]
        for position, relation in enumerate(stage.relations):
            name = f"{drawing.id_of(stage)}_relation_{position}"
            kind = type(relation).__name__.lower()
            inside.append(f'{name} [label="{kind}", shape=ellipse];')
            inside += [f"{drawing.id_of(iv)} -> {name};" for iv in relation.parents]
            inside += [f"{name} -> {drawing.id_of(iv)};" for iv in relation.children]
        drawing.cluster(stage, inside)
    return dump_graph(drawing.text(), show_svg, dot_file_path, output_dot_string)


def viz_dataflow_graph(
    sch: Schedule,
    show_svg: bool = False,
    dot_file_path: str = "",
    output_dot_string: bool = False,
) -> str | None:
    """Draw which stage reads which; parameters of :func:`viz_schedule_tree`."""
    drawing = _Drawing(sch, "Dataflow Graph")
    producers = {}
    for stage in drawing.stages:
        label = _escaped(f"{stage.op.name}\n{type(stage.op).__name__}\nscope: {_scope(stage)}")
        drawing.lines.append(f'  {drawing.id_of(stage)} [label="{label}", shape=box];')
        producers.update({tensor: drawing.id_of(stage) for tensor in stage.op.outputs})
    for stage in drawing.stages:
        for tensor in stage.op.input_tensors:
            shape = _escaped(f"{tensor.dtype}{[str(dim) for dim in tensor.shape]}")
            edge = f"{producers[tensor]} -> {drawing.id_of(stage)}"
            drawing.lines.append(f'  {edge} [label="{shape}"];')
    return dump_graph(drawing.text(), show_svg, dot_file_path, output_dot_string)


def dump_graph(
    dot_string: str,
    show_svg: bool = True,
    dot_file_path: str = "",
    output_dot_string: bool = False,
) -> str | None:
    """Show, write or return a drawing."""
    if dot_file_path:
        write_text(dot_file_path, dot_string)
    if show_svg:
        _show(dot_string)
    return dot_string if output_dot_string else None


def _show(dot_string: str) -> None:
    try:
        graphviz = importlib.import_module("graphviz")
        display = importlib.import_module("IPython.display")
    except ImportError as error:
        raise TVMError(
            f"show_svg requires the packages graphviz and IPython, got no {error.name}",
            hint="write the drawing with dot_file_path, and run: dot -Tsvg FILE",
        ) from error
    display.display(display.SVG(graphviz.Source(dot_string).pipe(format="svg")))


def schedule_tree_text(sch: Schedule) -> str:
    """The loops of all stages as indented text, stages inside the loops that they run in."""
    ranges = _ranges_of(sch)
    lines: list[str] = []

    def write(stage: Stage, depth: int) -> None:
        lines.append("  " * depth + f"{stage.op.name} ({_scope(stage)})")
        for iv in stage.leaf_iter_vars:
            depth += 1
            lines.append("  " * depth + _axis_text(iv, stage, ranges))
            for inner in stages:
                if inner.attach_spec().attach_ivar is iv:
                    write(inner, depth + 1)

    stages = [stage for stage in sch.stages if not stage.is_inlined and stage.leaf_iter_vars]
    for stage in stages:
        if stage.attach_spec().attach_type is not AttachType.Scope:
            write(stage, 0)
    return "\n".join(lines)


class _Drawing:
    """Lines of a graph, and names of what is in it."""

    def __init__(self, sch: Schedule, title: str) -> None:
        if not isinstance(sch, Schedule):
            raise TVMError(f"tedd requires a schedule, got a value of {type(sch).__name__}")
        self.title = title
        self.stages: list[Stage] = list(sch.stages)
        self.ranges = _ranges_of(sch)
        self.lines: list[str] = []
        self._ids: dict[int, str] = {}
        for number, stage in enumerate(self.stages):
            self._ids[id(stage)] = f"Stage_{number}"
            for position, iv in enumerate(stage.all_iter_vars):
                self._ids.setdefault(id(iv), f"IterVar_{number}_{position}")

    def id_of(self, item: Stage | IterVar) -> str:
        return self._ids[id(item)]

    def node(self, iv: IterVar, stage: Stage) -> str:
        kind = stage.attr_of(iv).iter_type.name
        color = _COLORS[kind if kind != "DataPar" else iv.iter_type.name]
        label = _escaped(_axis_text(iv, stage, self.ranges))
        return f'{self.id_of(iv)} [label="{label}", shape=box, style=filled, fillcolor="{color}"];'

    def cluster(self, stage: Stage, inside: Iterable[str]) -> None:
        self.lines.append(f"  subgraph cluster_{self.id_of(stage)} {{")
        self.lines.append(f'    label="{_escaped(stage.op.name)}";')
        self.lines += [f"    {line}" for line in inside]
        self.lines.append("  }")

    def stage(self, stage: Stage) -> None:
        """A stage: its name, and its loops from the outermost to the innermost."""
        name, loops = self.id_of(stage), stage.leaf_iter_vars
        label = _escaped(f"{stage.op.name}\nscope: {_scope(stage)}\n{stage.attach_type.name}")
        inside = [f'{name} [label="{label}", shape=box];', *[self.node(iv, stage) for iv in loops]]
        chain = [name, *[self.id_of(iv) for iv in loops]]
        inside += [f"{b} -> {a} [style=dotted];" for a, b in pairwise(chain)]
        self.cluster(stage, inside)

    def text(self) -> str:
        body = "\n".join(self.lines)
        return f'digraph "{self.title}" {{\n  rankdir=BT;\n  label="{self.title}";\n{body}\n}}\n'


def _attach_point(drawing: _Drawing, stage: Stage) -> str | None:
    spec = stage.attach_spec()
    if stage.is_inlined:
        return None
    if spec.attach_type is AttachType.Scope and spec.attach_ivar is not None:
        return drawing.id_of(spec.attach_ivar)
    if spec.attach_type is AttachType.ScanUpdate:
        return drawing.id_of(spec.attach_stage)
    return "ROOT"


def _ranges_of(sch: Schedule) -> dict[IterVar, Range]:
    """The ranges of axes that are known; of all of them if the schedule is in normal form."""
    try:
        return InferBound(sch)
    except TVMError:
        return {}


def _axis_text(iv: IterVar, stage: Stage, ranges: dict[IterVar, Range]) -> str:
    attr = stage.attr_of(iv)
    domain = ranges.get(iv, iv.dom)
    extent = "" if domain is None else f" in [{domain.min}, {domain.min + domain.extent})"
    thread = f" on {attr.bind_thread.thread_tag}" if attr.bind_thread is not None else ""
    kind = attr.iter_type.name
    shown = kind if kind != "DataPar" else iv.iter_type.name
    return f"{iv.var.name}{extent} {shown}{thread}"


def _scope(stage: Stage) -> str:
    return stage.scope or "global"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
