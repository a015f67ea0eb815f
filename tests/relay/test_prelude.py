"""The library of definitions: lists, trees, arrays of tensors."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import relay
from tvm.relay.prelude import Prelude, get_tensor_array_shape


def as_list(value: object) -> list:
    items = []
    while value.fields:
        items.append(value.fields[0])
        value = value.fields[1]
    return items


def run(prelude: Prelude, body: relay.Expr, *args: object, kind: str = "debug") -> object:
    params = relay.analysis.free_vars(body)
    prelude.mod["main"] = relay.Function(params, body)
    return relay.create_executor(kind, mod=prelude.mod).evaluate()(*args)


def numbers(prelude: Prelude, *values: int) -> relay.Expr:
    _, cons, nil = prelude.mod.get_type("List")
    made = nil()
    for value in reversed(values):
        made = cons(relay.const(value), made)
    return made


def ints(value: object) -> list[int]:
    return [int(v.numpy()) for v in as_list(value)]


def test_functions_on_lists_compute_what_their_names_say() -> None:
    p = Prelude()
    xs = numbers(p, 3, 1, 2)
    x = relay.var("x", "int32")
    double = relay.Function([x], x + x)
    y = relay.var("y", "int32")
    minus = relay.Function([x, y], x - y)
    assert ints(run(p, p.map(double, xs))) == [6, 2, 4]
    assert ints(run(p, p.rev(xs))) == [2, 1, 3]
    assert ints(run(p, p.concat(xs, xs))) == [3, 1, 2, 3, 1, 2]
    assert ints(run(p, p.update(xs, relay.const(1), relay.const(9)))) == [3, 9, 2]
    big = relay.Function([x], relay.greater(x, relay.const(1)))
    assert ints(run(p, p.filter(big, xs))) == [3, 2]
    for body, expected in [
        (p.sum(xs), 6),
        (p.length(xs), 3),
        (p.nth(xs, relay.const(2)), 2),
        (p.hd(p.tl(xs)), 1),
        (p.foldl(minus, relay.const(10), xs), 4),
        (p.foldr(minus, relay.const(10), xs), 3 - (1 - (2 - 10))),
        (p.foldr1(minus, xs), 3 - (1 - 2)),
        (relay.Call(p.iterate(double, relay.const(3)), [relay.const(1)]), 8),
        (relay.Call(p.compose(double, p.id), [relay.const(4)]), 8),
        (relay.Call(p.flip(minus), [relay.const(4), relay.const(9)]), 5),
    ]:
        assert run(p, body).numpy() == expected


def test_pairs_and_accumulated_maps() -> None:
    p = Prelude()
    xs = numbers(p, 1, 2, 3)
    pairs = as_list(run(p, p.zip(xs, p.rev(xs))))
    assert [(int(a.numpy()), int(b.numpy())) for a, b in pairs] == [(1, 3), (2, 2), (3, 1)]
    a, b = relay.var("a", "int32"), relay.var("b", "int32")
    add = relay.Function([a, b], relay.Tuple([a + b, a]))
    total, before = run(p, p.map_accuml(add, relay.const(0), xs))
    assert (int(total.numpy()), ints(before)) == (6, [3, 1, 0])
    total, before = run(p, p.map_accumr(add, relay.const(0), xs))
    assert (int(total.numpy()), ints(before)) == (6, [5, 3, 0])


def test_lists_are_unfolded_and_trees_mapped() -> None:
    p = Prelude()
    _, some, none = p.mod.get_type("Option")
    n = relay.var("n", "int32")
    grow = relay.Function(
        [n],
        relay.If(relay.less(n, relay.const(3)), some(relay.Tuple([n + relay.const(1), n])), none()),
    )
    assert ints(run(p, p.unfoldr(grow, relay.const(0)))) == [0, 1, 2]
    assert ints(run(p, p.unfoldl(grow, relay.const(0)))) == [2, 1, 0]
    _, rose = p.mod.get_type("Tree")
    _, cons, nil = p.mod.get_type("List")
    leaf = rose(relay.const(2), nil())
    tree = rose(relay.const(1), cons(leaf, cons(leaf, nil())))
    x = relay.var("x", "int32")
    mapped = run(p, p.tmap(relay.Function([x], x * x), tree))
    assert mapped.fields[0].numpy() == 1
    assert [int(t.fields[0].numpy()) for t in as_list(mapped.fields[1])] == [4, 4]
    assert run(p, p.size(tree)).numpy() == 3


@pytest.mark.parametrize("name", ["prelude.rly", "gradient.rly", "nat.rly"])
def test_library_is_read_again_from_its_text(name: str) -> None:
    mod = tvm.IRModule()
    mod.import_from_std(name)
    count = len(mod.functions)
    mod.import_from_std(name)
    assert len(mod.functions) == count
    again = relay.parse(mod.astext())
    tvm.ir.assert_structural_equal(again, mod, map_free_vars=True)


def test_unknown_library_is_named() -> None:
    with pytest.raises(tvm.error.TVMError, match=r"no file 'prelud.rly'.*prelude.rly"):
        tvm.IRModule().import_from_std("prelud.rly")


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_arrays_of_tensors_are_written_read_and_stacked(kind: str) -> None:
    p = Prelude()
    dtype = "float32"
    make, write, stack = (
        p.get_global_var(n, dtype) for n in ("tensor_array", "tensor_array_write", "tensor_array_stack")
    )  # fmt: skip
    tensor1 = p.get_tensor_ctor("tensor1", dtype)
    v = relay.var("v", shape=(relay.Any(),))
    array = write(make(relay.const(2)), relay.const(0), tensor1(v))
    array = write(array, relay.const(1), tensor1(v + v))
    data = np.array([1, 2, 3], "float32")
    found = run(p, stack(array), data, kind=kind)
    np.testing.assert_array_equal(_tensor(found), np.stack([data, 2 * data]))


def _tensor(value: object) -> np.ndarray:
    return (value.fields[0] if hasattr(value, "fields") else value[0]).numpy()


def test_arrays_of_tensors_are_split_gathered_and_scattered() -> None:
    p = Prelude()

    def of(name: str) -> relay.GlobalVar:
        return p.get_global_var(name, "float32")

    data = np.arange(12, dtype="float32").reshape(4, 3)
    x = relay.var("x", shape=(relay.Any(), relay.Any()))
    rows = of("tensor_array_unstack_tensor2")(x)
    assert [_tensor(t).tolist() for t in as_list(run(p, rows, data))] == data.tolist()
    where = relay.var("where", shape=(relay.Any(),), dtype="int32")
    picked = run(p, of("tensor_array_gather")(rows, where), data, np.array([2, 0], "int32"))
    np.testing.assert_array_equal(_tensor(picked), data[[2, 0]])
    joined = run(p, of("tensor_array_concat")(rows), data)
    np.testing.assert_array_equal(_tensor(joined), data.ravel())
    tensor2 = p.get_tensor_ctor("tensor2", "float32")
    empty = of("tensor_array")(relay.const(2))
    parts = of("tensor_array_split")(empty, tensor2(x), where)
    found = as_list(run(p, parts, data, np.array([1, 3], "int32")))
    np.testing.assert_array_equal(_tensor(found[0]), data[:1])
    np.testing.assert_array_equal(_tensor(found[1]), data[1:])
    target = of("tensor_array")(relay.const(4))
    spread = as_list(
        run(
            p,
            of("tensor_array_scatter")(target, where, rows),
            np.array([3, 1, 0, 2], "int32"),
            data,
        )
    )
    assert [_tensor(t).tolist() for t in spread] == data[[2, 1, 3, 0]].tolist()


def test_arrays_of_one_shape() -> None:
    p = Prelude()
    shape = (3,)

    def of(name: str) -> relay.GlobalVar:
        return p.get_global_var_static(name, "float32", shape)

    data = np.arange(6, dtype="float32").reshape(2, 3)
    x = relay.var("x", shape=(relay.Any(), 3))
    rows = of("tensor_array_unstack")(x)
    stacked = run(p, of("tensor_array_stack")(rows), data)
    np.testing.assert_array_equal(_tensor(stacked), data)
    one = of("tensor_get_data")(of("tensor_array_read")(rows, relay.const(1)))
    np.testing.assert_array_equal(run(p, one, data).numpy(), data[1])
    assert p.get_name_static("tensor_array", "float32", shape) == "tensor_array_float32_3"
    typed = relay.var(
        "r", p.mod.get_type("List")[0](p.get_type_static("tensor_t", "float32", shape)())
    )
    assert [int(d) for d in get_tensor_array_shape(typed, "float32", p)] == [3]


def test_tensors_of_one_shape_are_joined_and_split() -> None:
    p = Prelude()
    ops = relay.prelude.StaticTensorArrayOps(p, "float32", (relay.Any(), 3))
    ops.register()
    make, of = ops.get_ctor("tensor_constructor"), ops.get_global_var
    data = np.arange(12, dtype="float32").reshape(4, 3)
    x = make(relay.var("x", shape=(4, 3)))
    lengths = relay.const(np.array([1, 3], "int32"))
    pieces = of("tensor_array_split")(of("tensor_array")(relay.const(2)), x, lengths)
    found = [_tensor(t).tolist() for t in as_list(run(p, pieces, data, kind="vm"))]
    assert found == [data[:1].tolist(), data[1:].tolist()]
    for body, wanted in [
        (of("tensor_array_concat")(pieces), data),
        (of("tensor_take")(x, relay.const(1), relay.const(3)), data[1:3]),
        (of("tensor_concatenate")(x, x), np.concatenate([data, data])),
        (of("tensor_expand_dims")(x), data[None]),
    ]:
        np.testing.assert_array_equal(_tensor(run(p, body, data)), wanted)


def test_arrays_are_split_from_tensors_of_another_shape() -> None:
    p = Prelude()
    ops = relay.prelude.StaticTensorArrayOps(p, "float32", (2, 3))
    ops.define_tensor_array_split((4, 3), (2,), True)
    value = relay.prelude.StaticTensorArrayOps(p, "float32", (4, 3)).get_ctor("tensor_constructor")
    rows = relay.prelude.StaticTensorArrayOps(p, "float32", (relay.Any(), 3))
    data = np.arange(12, dtype="float32").reshape(4, 3)
    array = rows.get_global_var("tensor_array")(relay.const(2))
    lengths = relay.const(np.array([1, 3], "int32"))
    x = relay.var("x", shape=(4, 3))
    pieces = ops.get_global_var("tensor_array_split")(array, value(x), lengths)
    assert [_tensor(t).shape for t in as_list(run(p, pieces, data))] == [(1, 3), (3, 3)]


def test_natural_numbers_go_to_programs_and_back() -> None:
    p = Prelude()
    add = relay.testing.nat.get_type(p, "nat") and p.mod.get_global_var("nat_add")
    make, count = relay.testing.nat.make_nat_expr, relay.testing.nat.count
    assert count(p, make(p, 4)) == 4
    assert count(p, run(p, add(make(p, 2), make(p, 3)))) == 5
    double = p.mod.get_global_var("nat_double")
    n = relay.var("n", p.mod.get_global_type_var("nat")())
    value = relay.testing.nat.make_nat_value(p, 3)
    p.mod["main"] = relay.Function([n], double(n))
    found = relay.create_executor("debug", mod=p.mod).evaluate()(value)
    assert count(p, found) == 6
    with pytest.raises(ValueError, match="from 0 on"):
        make(p, -1)
