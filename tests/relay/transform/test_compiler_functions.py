"""Functions for external compilers: made global, marked as external, put back."""

from __future__ import annotations

import tvm
from tvm import relay
from tvm.relay.transform import (
    InferType,
    InlineCompilerFunctionsBoundTo,
    MarkCompilerFunctionsAsExtern,
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
)

OUTLINED = """
#[version = "0.0.5"]
def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
  @sum(%x)
}
def @sum(%p: Tensor[(4), float32], Compiler="c", global_symbol="sum", Primitive=1) -> Tensor[(4), float32] {
  %0 = fn (%a: Tensor[(4), float32], Composite="c.twice") -> Tensor[(4), float32] { add(%a, %a) };
  %0(%p)
}
"""


def _parsed(text: str) -> tvm.IRModule:
    return InferType()(relay.parse(text))


def test_functions_bound_by_a_let_become_global() -> None:
    local = _parsed(
        """
        #[version = "0.0.5"]
        def @main(%x: Tensor[(4), float32]) -> Tensor[(4), float32] {
          let %f = fn (%p: Tensor[(4), float32], Compiler="c", global_symbol="sum", Primitive=1)
              -> Tensor[(4), float32] {
            %0 = fn (%a: Tensor[(4), float32], Composite="c.twice") -> Tensor[(4), float32] {
              add(%a, %a)
            };
            %0(%p)
          };
          %f(%x)
        }
        """
    )
    found = OutlineCompilerFunctionsWithExistingGlobalSymbols("c")(local)
    tvm.ir.assert_structural_equal(found, _parsed(OUTLINED), map_free_vars=True)
    other = OutlineCompilerFunctionsWithExistingGlobalSymbols("d")(local)
    assert [g.name_hint for g in other.get_global_vars()] == ["main"]


def test_external_functions_keep_nothing_but_the_mark() -> None:
    found = MarkCompilerFunctionsAsExtern("c")(_parsed(OUTLINED))
    assert dict(found["sum"].attrs.items()) == {"Extern": 1}


def test_functions_put_back_are_operators() -> None:
    mod = _parsed(OUTLINED)
    found = InlineCompilerFunctionsBoundTo([mod.get_global_var("sum")])(mod)
    x = relay.var("x", shape=(4,))
    expected = InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.add(x, x))))
    tvm.ir.assert_structural_equal(found, expected, map_free_vars=True)
