"""Values of algebraic data types, built and matched."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tests.relay.vm.common import check, plain, run_vm
from tvm import relay
from tvm.error import TypeCheckError
from tvm.runtime.container import ADT
from tvm.runtime.vm import VirtualMachine

LISTS = """
#[version = "0.0.5"]
type List[A] {
  Cons(A, List[A]),
  Nil,
}
def @map[A, B](%f: fn(A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) {
    Cons(%x, %rest) => Cons(%f(%x), @map(%f, %rest)),
    Nil => Nil(),
  }
}
def @foldl[A, B](%f: fn(B, A) -> B, %acc: B, %xs: List[A]) -> B {
  match (%xs) {
    Cons(%x, %rest) => @foldl(%f, %f(%acc, %x), %rest),
    Nil => %acc,
  }
}
def @iota(%n: int32) -> List[int32] {
  if (equal(%n, 0)) { Nil() } else { Cons(%n, @iota(subtract(%n, 1))) }
}
"""


def with_lists(main: str) -> tvm.IRModule:
    """A module of the lists above and a main function."""
    return relay.parse(LISTS + main)


def test_lists_are_mapped_and_folded() -> None:
    mod = with_lists("""
    def @main(%n: int32) -> int32 {
      let %square = fn (%x: int32) -> int32 { multiply(%x, %x) };
      let %plus = fn (%a: int32, %b: int32) -> int32 { add(%a, %b) };
      @foldl(%plus, 0, @map(%square, @iota(%n)))
    }
    """)
    check(mod, np.int32(385), np.int32(10))


def test_a_value_of_a_data_type_is_a_result() -> None:
    mod = with_lists("def @main() -> List[int32] { @iota(2) }")
    exe = relay.vm.compile(mod, "llvm")
    result = VirtualMachine(exe, tvm.cpu()).run()
    assert isinstance(result, ADT) and len(result) == 2
    assert (int(result[0].numpy()), int(result[1][0].numpy()), len(result[1][1])) == (2, 1, 0)
    _, cons, nil = mod.get_type("List")
    assert (result.tag, result[1][1].tag) == (cons.tag, nil.tag)


def test_a_result_is_an_argument_again() -> None:
    mod = with_lists("""
    def @make(%n: int32) -> List[int32] { @iota(%n) }
    def @main(%xs: List[int32]) -> int32 {
      let %plus = fn (%a: int32, %b: int32) -> int32 { add(%a, %b) };
      if (greater(@foldl(%plus, 0, %xs), 0)) { @foldl(%plus, 0, %xs) } else { 0 }
    }
    """)
    machine = VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    _, cons, nil = mod.get_type("List")
    assert int(machine.run(ADT(cons.tag, [np.int32(4), ADT(nil.tag, [])])).numpy()) == 4


def test_a_list_of_many_items_is_built_and_released() -> None:
    mod = with_lists("""
    def @upto(%n: int32, %xs: List[int32]) -> List[int32] {
      if (equal(%n, 0)) { %xs } else { @upto(subtract(%n, 1), Cons(%n, %xs)) }
    }
    def @main(%n: int32) -> List[int32] { @upto(%n, Nil()) }
    """)
    machine = VirtualMachine(relay.vm.compile(mod, "llvm"), tvm.cpu())
    assert int(machine.run(np.int32(200_000))[0].numpy()) == 1


def test_the_first_clause_that_fits_is_taken() -> None:
    mod = with_lists("""
    def @main(%n: int32) -> int32 {
      match (@iota(%n)) {
        Cons(%a, Cons(%b, _)) => subtract(%a, %b),
        Cons(%a, Nil) => multiply(%a, 100),
        _ => -1,
      }
    }
    """)
    for n, expected in ((3, 1), (1, 100), (0, -1)):
        check(mod, np.int32(expected), np.int32(n))


def test_a_match_without_a_fitting_clause_raises() -> None:
    mod = with_lists("def @main(%n: int32) -> int32 { match? (@iota(%n)) { Nil => 7 } }")
    assert plain(run_vm(mod, np.int32(0))) == 7
    try:
        run_vm(mod, np.int32(1))
    except tvm.TVMError as error:
        assert "no clause of a match fits" in str(error)
    else:
        raise AssertionError("the match must be rejected")


def test_a_constant_of_unknown_type_parameter_is_matched() -> None:
    text = """
        type Choice[A] { One(A), Neither, }
        def @main(%x: float32) -> float32 {
          match (if (False) { One(%x) } else { Neither }) {
            One(%y: float32) => { exp(%y) },
            Neither => { %x },
          }
        }
    """
    check(relay.parse(text), np.float32(2), np.float32(2))


def test_a_declared_type_that_the_matched_value_has_not_is_rejected() -> None:
    text = """
        type Choice[A] { One(A), Neither, }
        def @main(%x: float32) -> int32 {
          match (One(%x)) {
            One(%y: int32) => { %y },
            Neither => { 1 },
          }
        }
    """
    with pytest.raises(TypeCheckError, match=r"%y is declared as int32"):
        relay.transform.InferType()(relay.parse(text))
