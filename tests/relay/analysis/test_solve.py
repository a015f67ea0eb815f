"""Types that are left out are told by the whole function."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay

T = "Tensor[(2,), float32]"


def typed(text: str) -> relay.Function:
    return relay.parse(text)["main"]


def param_types(func: relay.Function) -> dict[str, str]:
    found = {}
    for node in relay.analysis.post_order(func):
        if isinstance(node, relay.Function):
            for p in node.params:
                found[p.name_hint] = relay.printer.type_text(p.type_annotation)
    return found


def test_functions_given_to_functions_get_types() -> None:
    func = typed(f"""
    def @main(%x: {T}, %y: {T}) {{
      let %f = fn (%g) {{ fn (%a) {{ %0 = %g(%a); add(%0, %x) }} }};
      let %h = fn (%b) {{ negative(%b) }};
      %2 = %f(%h);
      %2(%y)
    }}""")
    found = param_types(func)
    assert (found["a"], found["b"], found["g"]) == (T, T, f"fn ({T}) -> {T}")
    x = np.array([1, 2], "float32")
    run = relay.create_executor("vm", tvm.IRModule.from_expr(func)).evaluate()
    np.testing.assert_allclose(run(x, x).numpy(), x - x)


def test_uses_behind_tuples_cells_and_branches_tell_types() -> None:
    func = typed(f"""
    def @main(%x: {T}, %c: bool) {{
      let %f = fn (%a, %t) {{ %0 = %t.1; add(%a, %0) }};
      let %g = fn (%b, %u) {{ %1 = %u.0; subtract(%b, %1) }};
      let %h = if (%c) {{ %f }} else {{ %g }};
      let %r = ref(%h);
      %2 = ref_read(%r);
      %3 = (%x, 3f);
      %2(%x, %3)
    }}""")
    found = param_types(func)
    assert found["a"] == found["b"] == T and found["t"] == found["u"] == f"({T}, float32)"


def test_global_functions_that_take_functions_tell_their_types() -> None:
    mod = relay.parse(f"""
    def @twice[A](%f: fn (A) -> A, %x: A) -> A {{ %0 = %f(%x); %f(%0) }}
    def @main(%x: {T}) {{
      let %inc = fn (%a) {{ add(%a, 1f) }};
      let %g = %inc;
      @twice(%g, %x)
    }}""")
    assert param_types(mod["main"])["a"] == T
    x = np.array([1, 2], "float32")
    np.testing.assert_allclose(relay.create_executor("vm", mod).evaluate()(x).numpy(), x + 2)


def test_what_nothing_tells_is_an_error_as_before() -> None:
    with pytest.raises(tvm.error.TVMError, match="cannot be inferred here"):
        typed(f"def @main(%x: {T}) {{ let %f = fn (%a) {{ negative(%a) }}; %x }}")
    with pytest.raises(tvm.error.TVMError):
        typed(f"def @main(%x: {T}) {{ let %f = fn (%g) {{ %g(%x, %x) }}; %f(fn (%a) {{ %a }}) }}")


def test_statements_are_done_in_order() -> None:
    mod = relay.parse(f"""
    def @main(%x: {T}) {{
      let %r = ref(%x);
      ref_write(%r, 1f + %x);
      %0 = ref_read(%r);
      add(%0, %x)
    }}""")
    x = np.array([1, 2], "float32")
    np.testing.assert_allclose(relay.create_executor("vm", mod).evaluate()(x).numpy(), x + 1 + x)
    assert relay.parse(mod.astext()).astext() == mod.astext()
