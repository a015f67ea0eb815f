"""Programs with functions as data compute the same, and have no functions as values."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.transform import Defunctionalization


def first_order(mod: tvm.IRModule) -> tvm.IRModule:
    """A module with the first-order form of main and what it needs."""
    func = Defunctionalization(mod["main"], mod)
    new = mod.clone()
    new["main"] = func
    return relay.transform.RemoveUnusedFunctions()(relay.transform.InferType()(new))


def check(text: str, *args: object) -> tvm.IRModule:
    mod = relay.parse(text)
    expected = relay.create_executor("debug", mod=mod).evaluate()(*args).numpy()
    new = first_order(mod)
    for func in new.functions.values():
        assert not func.type_params
        for node in relay.analysis.post_order(func.body):
            assert not isinstance(node, relay.Function)
            if isinstance(node, relay.Var):
                assert not isinstance(node.checked_type, relay.FuncType)
    for kind in ("debug", "vm"):
        found = relay.create_executor(kind, mod=new).evaluate()(*args)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    return new


def test_functions_passed_to_functions() -> None:
    new = check(
        """
        def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%f(%x)) }
        def @main(%x: float32) -> float32 {
          let %add = fn (%y: float32) -> float32 { %y + %x };
          @twice(%add, 1f) * @twice(fn (%y: float32) -> float32 { %y * %x }, 2f)
        }""",
        np.float32(3),
    )
    assert [len(d.constructors) for d in new.type_definitions.values()] == [2]


def test_polymorphic_functions_are_copied_for_their_types() -> None:
    new = check(
        """
        type List[A] { Cons(A, List[A]), Nil, }
        def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
          match (%xs) { Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)), Nil => Nil, }
        }
        def @foldr[A, B](%f: fn (A, B) -> B, %z: B, %xs: List[A]) -> B {
          match (%xs) { Cons(%x, %rest) => %f(%x, @foldr(%f, %z, %rest)), Nil => %z, }
        }
        def @main(%n: int32) -> int32 {
          let %floats = @map(fn (%x: int32) -> float32 { cast(%x, dtype="float32") }, Cons(%n, Cons(2, Nil)));
          let %ints = @map(fn (%x: float32) -> int32 { cast(%x * 2f, dtype="int32") }, %floats);
          @foldr(fn (%a: int32, %b: int32) -> int32 { %a + %b }, %n, %ints)
        }""",
        np.int32(4),
    )
    names = [g.name_hint for g in new.functions if g.name_hint.startswith("map")]
    assert len(names) == 2


def test_recursive_closures_and_global_functions_as_values() -> None:
    check(
        """
        def @inc(%x: int32) -> int32 { %x + 1 }
        def @main(%n: int32) -> int32 {
          let %step = @inc;
          let %loop = fn (%i: int32, %s: int32) -> int32 {
            if (%i == 0) { %s } else { %loop(%i - 1, %step(%s) * 2) }
          };
          %loop(%n, 1)
        }""",
        np.int32(3),
    )


def test_functions_from_functions_are_rejected() -> None:
    mod = relay.parse("def @main(%x: float32) -> fn () -> float32 { fn () -> float32 { %x } }")
    with pytest.raises(tvm.error.TVMError, match="takes or returns functions"):
        Defunctionalization(mod["main"], mod)


def test_polymorphic_local_functions_are_used_at_the_types_of_calls() -> None:
    new = check(
        """
        def @apply[A, B](%f: fn (A) -> B, %x: A) -> B { %f(%x) }
        def @main(%x: float32, %n: int32) -> float32 {
          let %same = fn [A](%y: A) -> A { %y };
          @apply(%same, %x) * cast(%same(@apply(%same, %n)), dtype="float32")
        }""",
        np.float32(3),
        np.int32(2),
    )
    assert len(new.type_definitions) == 2


def test_polymorphic_global_functions_are_values_at_the_types_of_calls() -> None:
    new = check(
        """
        type List[A] { Cons(A, List[A]), Nil, }
        def @same[A](%x: A) -> A { %x }
        def @sum(%f: fn (int32) -> int32, %xs: List[int32]) -> int32 {
          match (%xs) { Cons(%x, %rest) => %f(%x) + @sum(%f, %rest), Nil => 0, }
        }
        def @main(%n: int32) -> int32 {
          let %more = fn (%x: int32) -> int32 { %x + 3 };
          @sum(@same, Cons(%n, Cons(2, Nil))) * 100 + @sum(%more, Cons(%n, Nil))
        }""",
        np.int32(5),
    )
    assert len([name for name in new.functions if name.name_hint.startswith("same")]) == 1
