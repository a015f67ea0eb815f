"""The steps of a verification, in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm.ir.transform import Pass
from tvm.target import Target

from .blame import ROUNDING, UNSTABLE, Verdict, find_culprit
from .compare import Difference, Tolerance, compare, largest_error
from .engine import Engine
from .graph import ModelGraph, load, make_inputs
from .reference import reference_values
from .report import Report, Row
from .search import Search


def verify(
    model: Any,
    inputs: Mapping[str, Any] | None = None,
    against: str = "onnxruntime",
    shape: Mapping[str, Sequence[int]] | None = None,
    target: Any = "llvm",
    opt_level: int = 3,
    rtol: float | None = None,
    atol: float | None = None,
    seed: int = 0,
    passes: Sequence[Pass] = (),
    context: Mapping[str, Any] | None = None,
    folder: str | os.PathLike[str] | None = None,
    tell: Callable[[str], None] = lambda _: None,
    fallback: bool = False,
) -> Report:
    """Compare a compiled ONNX model with a reference, tensor by tensor.

    Parameters
    ----------
    model : onnx.ModelProto or str
        The model or the path of its file.
    inputs : dict of str to array, optional
        Inputs by name; others are random.
    against : str
        "onnxruntime", "reference" (ONNX's own, in numpy) or "opt0": our code without optimisation.
    shape : dict of str to tuple, optional
        Shapes of random inputs where the model leaves dimensions open; they are 1 otherwise.
    target : str or Target
        The machine to compile for, on which the model runs.
    opt_level : int
        Level of optimisation.
    rtol, atol : float, optional
        The allowed error, as a share of the element and of the tensor's largest element; by default
        according to the element type.
    seed : int
        Of the random inputs.
    passes : list of Pass
        Passes of your own, which run after the import, and can be blamed as any other.
    context : dict, optional
        More arguments of PassContext: ``{"config": {...}, "disabled_pass": [...]}``.
    folder : str, optional
        Where to write a reproducer if there is a difference.
    tell : callable, optional
        Is told what happens.
    fallback : bool
        Let ONNX's reference or ONNX Runtime compute operators that are not supported, on our side
        too.

    Returns
    -------
    Report
    """
    graph = ModelGraph(load(model))
    engine = Engine(Target(target), opt_level, tuple(passes), dict(context or {}), fallback)
    tolerance = Tolerance(rtol, atol, graph.is_quantised)
    values = make_inputs(graph, inputs or {}, shape or {}, seed)
    random = graph.random_tensors()
    names = [name for name in graph.tensors if name not in random]
    tell(f"running {against}")
    known = reference_values(against, graph, names, values, engine.unoptimised())
    expected = {n: known[n] for n in names if isinstance(known.get(n), np.ndarray)}
    outputs = [name for name in graph.outputs if name in expected]
    tell("compiling the model")
    final = _differences(engine.run(graph.exposing(outputs), values), expected, tolerance)
    tell(f"compiling the model with {len(expected)} outputs")
    found = engine.run(graph.exposing(expected), values)
    rows = [_row(graph, name, found[name], expected[name], tolerance) for name in expected]
    report = Report(
        _title(model, graph, engine, against), rows,
        [name for name in graph.tensors if name not in expected], final,
        options=_options(against, engine, rtol, atol),
    )  # fmt: skip
    search = Search(graph, engine, tolerance, values, expected)
    _explain(report, search, tell)
    if folder is not None:
        report.write(folder)
    return report


def _title(model: Any, graph: ModelGraph, engine: Engine, against: str) -> str:
    name = graph.model.graph.name if not isinstance(model, (str, Path)) else Path(model).name
    return (
        f"{name or 'model'} at opt_level {engine.opt_level} for {engine.target} against {against}"
    )


def _options(
    against: str, engine: Engine, rtol: float | None, atol: float | None
) -> tuple[str, ...]:
    """The options of `tvmc verify` that are not the usual ones."""
    disabled = ",".join(engine.context.get("disabled_pass") or ())
    found = {
        "--against": (against, "onnxruntime"),
        "--target": (str(engine.target), str(Target("llvm"))),
        "--opt-level": (engine.opt_level, 3),
        "--rtol": (rtol, None),
        "--atol": (atol, None),
        "--disabled-pass": (disabled, ""),
    }
    flags = ["--fallback"] * engine.fallback
    given = [f"{name}={value}" for name, (value, usual) in found.items() if value != usual]
    return (*given, *flags)


def _differences(
    found: Mapping[str, Any], expected: Mapping[str, Any], tolerance: Tolerance
) -> dict[str, Difference]:
    all_of = {name: compare(found[name], expected[name], tolerance) for name in found}
    return {name: difference for name, difference in all_of.items() if difference is not None}


def _row(graph: ModelGraph, name: str, found: Any, expected: Any, tolerance: Tolerance) -> Row:
    difference = compare(found, expected, tolerance)
    number = graph.producer.get(name)
    node = graph.nodes[number] if number is not None else None
    return Row(
        name, node.name if node else "", node.op_type if node else "input",
        largest_error(found, expected), difference,
    )  # fmt: skip


def _explain(report: Report, search: Search, tell: Callable[[str], None]) -> None:
    """Find the first tensor that differs, the nodes that show it, and what is to blame."""
    wrong = [row for row in report.rows if row.difference is not None]
    if wrong:
        report.first = wrong[0]
    elif report.outputs:
        # only what is fused in the model as it is differs
        tell("searching the first tensor that differs")
        output, difference = next(iter(report.outputs.items()))
        name = search.first_tensor(output)
        row = next(row for row in report.rows if row.name == (name or output))
        report.first = Row(row.name, row.node, row.operator, row.error, difference)
        if name is None:
            report.verdict = Verdict("unknown", "", UNSTABLE)
            return
    else:
        return
    assert report.first.difference is not None
    report.reproducer = search.smallest_part(report.first.name, report.first.difference.error, tell)
    if report.reproducer is None:
        report.verdict = Verdict("rounding", "", ROUNDING)
    else:
        report.verdict = find_culprit(report.reproducer, search.engine, search.tolerance, tell)
