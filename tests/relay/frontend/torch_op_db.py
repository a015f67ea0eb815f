"""PyTorch's own operator database through the importer.

    python -m tests.relay.frontend.torch_op_db --table docs/pytorch_support.md

Every float32 sample of every operator is traced, imported, run and compared with eager results.
Operators whose results are random are compared in shape and element type.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import signal
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from tvm import relay
from tvm.runtime.foreign.torch_call import to_numpy

from .running import run

SECONDS_EACH = 300
# whose vectors have no sign of their own: torch says what of its samples' results is comparable
SIGNLESS = {"linalg_eigh", "linalg_svd", "svd"}
RELATIVE = 2e-4


@dataclass(frozen=True)
class Outcome:
    """What became of one operator: ``passes``, ``fails`` or ``untraced``."""

    name: str
    status: str
    samples: int
    passed: int
    reason: str = ""


class SampleCall(torch.nn.Module):
    """One sample as a function of its tensors; all else is part of it."""

    def __init__(self, function: Callable[..., Any], arguments: Any) -> None:
        super().__init__()
        leaves, self._spec = pytree.tree_flatten(arguments)
        self._leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self._function = function
        self.tensors = [leaf.detach().clone() for leaf in leaves if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self._leaves)
        for place, tensor in zip(self._places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self._spec)
        result = self._function(*args, **kwargs)
        found = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        return found[0] if len(found) == 1 else tuple(found)


class Untraceable(Exception):
    """Tracing itself does not work, whatever would import the result."""


def operators(dtype: torch.dtype = torch.float32) -> list[Any]:
    """The entries of the database that take an element type on the CPU."""
    return [op for op in op_db if dtype in op.supported_dtypes("cpu")]


def examine(
    op: Any, limit: int | None = None, seconds: int = SECONDS_EACH,
    dtype: torch.dtype = torch.float32,
) -> Outcome:  # fmt: skip
    """Run the samples of an operator, at most ``limit`` of them."""
    name = op.formatted_name
    passed, count, reason, untraced = 0, 0, "", ""
    try:
        with _time_limit(seconds), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in _samples(op, limit, dtype):
                try:
                    _check(SampleCall(*sample))
                except Untraceable as error:
                    untraced = untraced or _first_line(error)
                    continue
                except TimeoutError:
                    raise
                except Exception as error:
                    reason = reason or _first_line(error)
                else:
                    passed += 1
                count += 1
    except TimeoutError:
        count, reason = count + 1, reason or f"more than {seconds} s"
    except Exception as error:
        untraced = untraced or _first_line(error)
    if not count:
        return Outcome(name, "untraced", 0, 0, untraced or "no samples")
    return Outcome(name, "passes" if passed == count else "fails", count, passed, reason)


def _samples(op: Any, limit: int | None, dtype: torch.dtype) -> Iterator[Any]:
    torch.manual_seed(0)
    for index, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
        if index == limit:
            return
        arguments = ((sample.input, *sample.args), sample.kwargs)
        if op.formatted_name in SIGNLESS:
            yield _followed(op.op, sample.output_process_fn_grad), arguments
        else:
            yield op.op, arguments


def _followed(function: Callable[..., Any], process: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: process(function(*args, **kwargs))


def _check(call: SampleCall) -> None:
    """Trace, import, run, compare."""
    expected, random = _eager(call)
    if not call.tensors:
        raise Untraceable("a sample without tensors")
    try:
        with torch.no_grad():
            script = torch.jit.trace(call, [t.clone() for t in call.tensors], check_trace=False)
    except TimeoutError:
        raise
    except Exception as error:
        raise Untraceable(_first_line(error)) from error
    infos = [
        (f"x{i}", (tuple(t.shape), str(t.dtype).removeprefix("torch.")))
        for i, t in enumerate(call.tensors)
    ]
    mod, params = relay.frontend.from_pytorch(script, infos)
    inputs = {f"x{i}": _array(t) for i, t in enumerate(call.tensors)}
    actual = _interpret(mod, params, inputs)
    if len(actual) != len(expected):
        raise AssertionError(f"{len(actual)} outputs instead of {len(expected)}")
    for ours, theirs in zip(actual, expected, strict=True):
        _compare(ours, _array(theirs), random)


def _interpret(mod: Any, params: Any, inputs: Any) -> list[np.ndarray]:
    return run(mod, params, inputs) if COMPILED else _flat(
        relay.create_executor("debug", mod=mod).evaluate()(**inputs, **params)
    )  # fmt: skip


COMPILED = False


def _flat(value: Any) -> list[np.ndarray]:
    return [value.numpy()] if hasattr(value, "numpy") else [a for v in value for a in _flat(v)]


def _eager(call: SampleCall) -> tuple[list[torch.Tensor], bool]:
    """The results, and whether they depend on the random state."""
    results = []
    try:
        for seed in range(4):
            with torch.no_grad(), _seeds_from(seed):
                found = call(*[t.clone() for t in call.tensors])
            results.append([found] if isinstance(found, torch.Tensor) else list(found))
    except TimeoutError:
        raise
    except Exception as error:
        raise Untraceable(_first_line(error)) from error
    if not results[0]:
        raise Untraceable("no tensor results")
    same = all(
        torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))
        for other in results[1:]
        for a, b in zip(results[0], other, strict=True)
        if a.layout == torch.strided
    )
    return results[0], not same


@contextmanager
def _seeds_from(first: int) -> Iterator[None]:
    """The database gives random operators a seed of its own: here one that differs each time."""
    seed = torch.manual_seed
    seed(first)
    with mock.patch("torch.manual_seed", lambda number: seed(int(number) + first)):
        yield


def _array(tensor: torch.Tensor) -> np.ndarray:
    if tensor.layout != torch.strided:
        raise Untraceable("tensors that are not dense")
    return to_numpy(torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor)


def _compare(actual: np.ndarray, expected: np.ndarray, random: bool) -> None:
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        raise AssertionError(
            f"{actual.dtype}{list(actual.shape)} instead of {expected.dtype}{list(expected.shape)}"
        )
    if random or not expected.size:
        return
    if expected.dtype.name == "bfloat16":
        actual, expected = actual.astype("float32"), expected.astype("float32")
    if expected.dtype.kind != "f":
        if not np.array_equal(actual, expected):
            raise AssertionError("other values")
        return
    finite = np.isfinite(expected)
    scale = max(np.abs(expected[finite]).max(initial=0.0), 1e-3)
    if not np.array_equal(np.isnan(actual), np.isnan(expected)):
        raise AssertionError("other places of NaN")
    if not np.array_equal(actual[np.isinf(expected)], expected[np.isinf(expected)]):
        raise AssertionError("other infinities")
    worst = np.abs(actual[finite] - expected[finite]).max(initial=0.0) / scale
    if not worst <= RELATIVE:
        raise AssertionError(f"other values, by {worst:.1g} of the largest")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0] if lines else ''}"
    return re.sub(r"0x[0-9a-f]+", "0x", text)[:160]


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def write_table(outcomes: Sequence[Outcome], path: Path) -> None:
    """The outcomes as a page."""
    counts = Counter(outcome.status for outcome in outcomes)
    traced = counts["passes"] + counts["fails"]
    share = math.floor(1000 * counts["passes"] / max(traced, 1)) / 10
    lines = [
        "# PyTorch operators",
        "",
        "Written by `python -m tests.relay.frontend.torch_op_db --table docs/pytorch_support.md`:",
        "PyTorch's operator database, all float32 samples, traced, imported and run.",
        "",
        f"Of {len(outcomes)} entries, {traced} can be traced; {counts['passes']} of these "
        f"({share} %) agree with PyTorch on all samples.",
        "",
        "| operator | samples | pass | why not |",
        "|---|---|---|---|",
    ]
    for outcome in sorted(outcomes, key=lambda o: o.name):
        reason = outcome.reason.replace("|", "\\|").replace("\n", " ")
        note = f"not traced: {reason}" if outcome.status == "untraced" else reason
        lines.append(f"| {outcome.name} | {outcome.samples} | {outcome.passed} | {note} |")
    path.write_text("\n".join(lines) + "\n")


def main(arguments: Sequence[str]) -> int:
    """Command line: which operators, how many samples, where the results go."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="operators, all by default")
    parser.add_argument("--limit", type=int, help="samples of each operator")
    parser.add_argument("--part", default="0/1", help="I/N: every N-th operator from I")
    parser.add_argument("--log", type=Path, help="file to append outcomes to, as JSON lines")
    parser.add_argument("--table", type=Path, help="page to write")
    parser.add_argument("--from-log", action="store_true", help="write the table of the log")
    parser.add_argument("--dtype", default="float32", help="element type of the samples")
    parser.add_argument("--compiled", action="store_true", help="build instead of interpreting")
    options = parser.parse_args(arguments)
    global COMPILED
    COMPILED = options.compiled
    if options.from_log:
        known = [Outcome(**json.loads(line)) for line in options.log.read_text().splitlines()]
        write_table(list({outcome.name: outcome for outcome in known}.values()), options.table)
        return 0
    part, parts = (int(number) for number in options.part.split("/"))
    dtype = getattr(torch, options.dtype)
    chosen = [
        op for op in operators(dtype) if not options.names or op.formatted_name in options.names
    ]
    outcomes = []
    for op in chosen[part::parts]:
        outcomes.append(examine(op, options.limit, dtype=dtype))
        last = outcomes[-1]
        print(f"{last.status:8} {last.name} {last.passed}/{last.samples} {last.reason}", flush=True)
        if options.log:
            with options.log.open("a") as log:
                log.write(json.dumps(asdict(last)) + "\n")
    if options.table:
        write_table(outcomes, options.table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
