"""Comparisons that tests of compiled programs make."""

from __future__ import annotations

import inspect
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from tvm import arith, te, tir
from tvm.driver import build
from tvm.ir import structural_equal
from tvm.runtime import ndarray as nd
from tvm.support.later import names_from_above
from tvm.tir import op
from tvm.tir.interp import Interpreter

__getattr__ = names_from_above(__name__)


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Like numpy's, but shapes have to be equal: nothing is broadcast."""
    actual, desired = np.asanyarray(actual), np.asanyarray(desired)
    np.testing.assert_allclose(actual.shape, desired.shape)
    np.testing.assert_allclose(actual, desired, rtol=rtol, atol=atol, verbose=True)


def assert_prim_expr_equal(lhs: tir.PrimExpr, rhs: tir.PrimExpr) -> None:
    """Two expressions have the same structure, or their difference simplifies to zero.

    A call with effects is equal to one of the same arguments here, though two runs of it may differ.
    """
    if structural_equal(lhs, rhs):
        return
    analyzer = arith.Analyzer()
    if not analyzer.can_prove_equal(lhs, rhs):
        raise ValueError(f"{lhs} and {rhs} are not equal")


# values that a condition is interpreted for: compiling takes as long
MOST_INTERPRETED = 3000


def check_bool_expr_is_true(
    bool_expr: tir.PrimExpr, vranges: Mapping[tir.Var, Any], cond: tir.PrimExpr | None = None
) -> None:
    """Evaluate a condition for all values of its variables.

    Parameters
    ----------
    bool_expr : PrimExpr
        What has to hold.
    vranges : dict of Var to Range
        All values of each variable.
    cond : PrimExpr, optional
        Values for which it does not hold are left out.
    """
    machine = Interpreter()
    domains = {var: _range(bounds, machine) for var, bounds in vranges.items()}
    claim = bool_expr if cond is None else tir.any(tir.Not(cond), bool_expr)
    many = math.prod([len(domain) for domain in domains.values()]) > MOST_INTERPRETED
    failure = _first_failure_compiled(claim, domains) if many else _first_failure(claim, domains)
    if failure is not None:
        where = ", ".join(f"{v.name} = {x}" for v, x in zip(domains, failure, strict=True))
        raise AssertionError(f"{bool_expr} is false for {where}")


def _first_failure(claim: tir.PrimExpr, domains: Mapping[tir.Var, range]) -> tuple[int, ...] | None:
    machine = Interpreter()
    for values in product(*domains.values()):
        machine.env.update(dict(zip(domains, values, strict=True)))
        if not machine.visit(claim):
            return values
    return None


def _first_failure_compiled(
    claim: tir.PrimExpr, domains: Mapping[tir.Var, range]
) -> tuple[int, ...] | None:
    shape = [len(domain) for domain in domains.values()]

    def holds(*places: tir.Var) -> tir.PrimExpr:
        starts = zip(domains.items(), places, strict=True)
        values = {var: op.cast(i + domain.start, var.dtype) for (var, domain), i in starts}
        return op.cast(tir.stmt_functor.substitute(claim, values), "int8")

    result = te.compute(shape, holds)
    found = nd.empty(shape, "int8")
    build(te.create_schedule(result.op), [result], "llvm")(found)
    failures = np.argwhere(found.numpy() == 0)
    if not len(failures):
        return None
    return tuple([d.start + int(i) for d, i in zip(domains.values(), failures[0], strict=True)])


def check_int_constraints_trans_consistency(
    constraints_trans: arith.IntConstraintsTransform, vranges: Mapping[tir.Var, Any] | None = None
) -> None:
    """Check that two systems have the same solutions, for all values of their variables.

    Parameters
    ----------
    constraints_trans : IntConstraintsTransform
        The systems, and the variables of each in terms of the other's.
    vranges : dict of Var to Range, optional
        The values of variables that no range of the systems is for.
    """
    found, others = constraints_trans, dict(vranges or {})
    _check_solutions(found.dst, found.src, found.src_to_dst, found.dst_to_src, others)
    _check_solutions(found.src, found.dst, found.dst_to_src, found.src_to_dst, others)


def _check_solutions(
    system: arith.IntConstraints,
    other: arith.IntConstraints,
    values: Mapping[tir.Var, tir.PrimExpr],
    back: Mapping[tir.Var, tir.PrimExpr],
    others: Mapping[tir.Var, Any],
) -> None:
    """Each solution of a system gives one of the other, from which it comes back."""
    substitute = tir.stmt_functor.substitute
    claims = [substitute(condition, values) for condition in _conditions(other)]
    claims += [tir.EQ(var, substitute(value, values)) for var, value in back.items()]
    check_bool_expr_is_true(
        tir.all(*claims, tir.const(True, "bool")),
        {**others, **system.ranges},
        tir.all(*system.relations, tir.const(True, "bool")),
    )


def _conditions(system: arith.IntConstraints) -> list[tir.PrimExpr]:
    ends = [
        tir.all(var >= domain.min, var < domain.min + domain.extent)
        for var, domain in system.ranges.items()
    ]
    return [*ends, *system.relations]


def _range(bounds: Any, machine: Interpreter) -> range:
    first = int(machine.visit(bounds.min))
    return range(first, first + int(machine.visit(bounds.extent)))


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Sequence[Any] | Mapping[str, Any],
    grad_values: Sequence[Any] | Mapping[str, Any],
    function_value: float | None = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Compare gradients of a scalar function with central differences.

    Parameters
    ----------
    function : callable
        From the inputs, by position or by name, to a number.
    input_values, grad_values : list or dict of numpy arrays
        The point, and the gradient to be checked at it.
    """
    if not isinstance(input_values, Mapping):
        count = len(input_values)
        check_numerical_grads(
            lambda **named: function(*[named[f"x{i}"] for i in range(count)]),
            {f"x{i}": v for i, v in enumerate(input_values)},
            {f"x{i}": v for i, v in enumerate(grad_values)},
            function_value, delta, atol, rtol,
        )  # fmt: skip
        return
    assert isinstance(grad_values, Mapping)
    for name, gradient in grad_values.items():
        numeric = np.zeros_like(np.asarray(input_values[name], "float64"))
        for index in np.ndindex(numeric.shape):
            above, below = [
                float(function(**_moved(input_values, name, index, step)))
                for step in (delta, -delta)
            ]
            numeric[index] = (above - below) / (2 * delta)
        assert_allclose(np.asarray(gradient, "float64"), numeric, rtol=rtol, atol=atol)


def _moved(
    values: Mapping[str, Any], name: str, index: tuple[int, ...], step: float
) -> dict[str, Any]:
    changed = np.array(values[name])
    changed[index] += step
    return {**values, name: changed}


def identity_after(x: Any, sleep: float) -> Any:
    """The argument, after so many seconds: for tests of time limits."""
    if sleep:
        time.sleep(sleep)
    return x


def terminate_self() -> None:
    """End the process as one that failed does: for tests of workers that die."""
    sys.exit(-1)


def main() -> None:
    """Run the calling file's tests with pytest and leave: for ``if __name__ == "__main__"``."""
    import pytest

    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    file = inspect.getsourcefile(frame.f_back)
    sys.exit(pytest.main([str(file), *sys.argv[1:]]))


def strtobool(val: str) -> bool:
    """A truth value as people write it: y, yes, t, true, on, 1, or n, no, f, false, off, 0."""
    text = val.lower()
    if text in ("y", "yes", "t", "true", "on", "1"):
        return True
    if text in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"strtobool requires a truth value such as yes or 0, got {val!r}")


def install_request_hook(depth: int) -> None:
    """Nothing: requests of tests for models go where they say, as no mirror is known.

    Parameters
    ----------
    depth : int
        How many folders below the tests' own the program is.
    """
    del depth
