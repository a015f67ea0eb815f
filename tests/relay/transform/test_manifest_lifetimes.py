"""Where values are read for the last time."""

from __future__ import annotations

import numpy as np

import tvm
from tvm import relay
from tvm.relay.transform import ManifestLifetimes


def with_kills(text: str) -> list[str]:
    """The lines of `main` with its kills, types left out."""
    mod = ManifestLifetimes()(relay.parse('#[version = "0.0.5"]\n' + text))
    lines = [line.split(" /*")[0].strip() for line in str(mod["main"]).splitlines()]
    return [line.partition(" = ")[2] if "kill" in line else line for line in lines]


def test_parameters_and_variables_are_killed_behind_their_last_use() -> None:
    lines = with_kills(
        "def @main(%x: int32, %f: int32) { let %y = add(%x, %f); let %z = exp(%y); (%z, %f) }"
    )
    assert [line for line in lines if line.startswith("memory.kill")] == [
        "memory.kill(%x)",
        "memory.kill(%y)",
    ]


def test_branches_kill_what_they_read_last() -> None:
    lines = with_kills("""
    def @main(%x: float32, %c: bool) {
      let %y = exp(%x);
      let %z = if (%c) { let %a = exp(%y); let %b = exp(%a); %b } else { %y };
      %z
    }""")
    order = [line for line in lines if "kill" in line or "else" in line]
    assert [o.strip("{} ") for o in order] == [
        "memory.kill(%x)", "memory.kill(%y)", "memory.kill(%a)", "else", "memory.kill(%c)",
    ]  # fmt: skip


def test_what_a_function_captures_is_killed_outside_of_it() -> None:
    lines = with_kills("""
    def @main(%x: float32) {
      let %f = fn (%y: float32) { let %a = add(%x, %y); let %b = exp(%a); %b };
      let %r = %f(%x);
      %r
    }""")
    kills = [line for line in lines if "kill" in line]
    assert kills == ["memory.kill(%y)", "memory.kill(%a)", "memory.kill(%f)", "memory.kill(%x)"]


def test_a_matched_value_outlives_the_variable_that_it_was_bound_to() -> None:
    mod = relay.parse("""
    #[version = "0.0.5"]
    def @main(%x: Tensor[(3), float32]) -> Tensor[(3), float32] {
      match (%x) { %v => add(exp(%x), tanh(%v)), }
    }""")
    value = np.array([0.5, -1.0, 2.0], "float32")
    found = relay.create_executor("vm", mod=mod).evaluate()(tvm.nd.array(value)).numpy()
    np.testing.assert_allclose(found, np.exp(value) + np.tanh(value), rtol=1e-5)
