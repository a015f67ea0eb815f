"""Random uses of the language around operators: control flow, functions, data types, references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tvm import relay
from tvm.relay import adt

from .scope import INTEGERS, Scope

Bindings = list[tuple[relay.Var, relay.Expr]]
DATA_TYPES = """
type Choice[A] { One(A), Two(A, A), Neither, }
type Chain[A] { Link(A, Chain[A]), End, }
type Tree[A] { Node(Tree[A], A, Tree[A]), Leaf, }
"""
INT = relay.scalar_type("int32")


def function(s: Scope, types: Sequence[relay.Type], closed: bool = False) -> relay.Function:
    """A function of tensors to a tensor, which uses what is around it unless it is closed."""
    params = [s.fresh(ty, "a") for ty in types]
    if closed:
        with s.closed():
            return relay.Function(params, s.block(params, s.any_tensor, s.rng.randint(1, 3)))
    return relay.Function(params, s.block(params, s.any_tensor, s.rng.randint(1, 3)))


def endofunction(s: Scope, ty: relay.Type) -> relay.Function:
    """A function from a type to the same type."""
    param = s.fresh(ty, "a")
    return relay.Function([param], s.block([param], partial(s.of_type, ty), 1), ty)


def add_global(s: Scope, func: relay.Function) -> relay.GlobalVar:
    s.count += 1
    gvar = relay.GlobalVar(f"f{s.count}")
    s.mod[gvar] = func
    return gvar


def applied(s: Scope) -> relay.Expr:
    """A function where it is called."""
    x = s.any_tensor()
    return relay.Call(function(s, [s.type_of(x)], closed=s.chance(0.5)), [x])


def closed_applied(s: Scope) -> relay.Expr:
    x = s.any_tensor()
    return relay.Call(function(s, [s.type_of(x)], closed=True), [x])


def condition(s: Scope) -> relay.Expr:
    """A truth value that is computed."""
    limit = relay.const(s.rng.randint(-2, 4))
    less = relay.less(relay.cast(relay.max(s.of_dtypes(INTEGERS)), "int32"), limit)
    if s.chance(0.2):
        return relay.logical_or(less, relay.any(s.of_dtypes(["bool"])))
    return less


def count(s: Scope) -> relay.Expr:
    """A number between 0 and 4."""
    return relay.clip(relay.cast(relay.max(s.of_dtypes(INTEGERS)), "int32"), 0, 4)


def conditional(s: Scope) -> relay.Expr:
    wanted = s.type_of(s.any_tensor())
    if s.chance(0.3):
        wanted = relay.TupleType([wanted, s.type_of(s.any_tensor())])
    branches = [s.block([], partial(s.of_type, wanted), 2) for _ in range(2)]
    made = relay.If(condition(s), *branches)
    if isinstance(wanted, relay.TupleType):
        return relay.TupleGetItem(made, s.rng.randrange(2))
    return made


def choices(s: Scope) -> list[relay.Constructor]:
    return list(s.mod.get_type("Choice"))[1:]


def matched(s: Scope) -> relay.Expr:
    """A value of a data type, and a match on it."""
    one, two, neither = choices(s)
    ty = s.type_of(s.any_tensor())
    made = s.pick([
        lambda: one(s.of_type(ty)),
        lambda: two(s.of_type(ty), s.of_type(ty)),
        lambda: relay.If(condition(s), one(s.of_type(ty)), neither()),
    ])()  # fmt: skip
    clauses = []
    constructors = s.rng.sample([one, two, neither], 3)
    for number, constructor in enumerate(constructors):
        fields = [s.fresh(ty, "f") for _ in constructor.inputs]
        pattern: adt.Pattern = adt.PatternConstructor(
            constructor,
            [adt.PatternVar(f) if s.chance(0.8) else adt.PatternWildcard() for f in fields],
        )
        bound = [f.var for f in pattern.patterns if isinstance(f, adt.PatternVar)]
        if number == 2 and s.chance(0.4):
            pattern, bound = adt.PatternWildcard(), []
        clauses.append(adt.Clause(pattern, s.block(bound, partial(s.of_type, ty), 1)))
    return adt.Match(made, clauses)


def matched_deeply(s: Scope) -> relay.Expr:
    """A match on a tuple of values of data types."""
    one, two, neither = choices(s)
    ty = s.type_of(s.any_tensor())
    picked = [relay.If(condition(s), one(s.of_type(ty)), neither()), one(s.of_type(ty))]
    if s.chance(0.5):
        picked.reverse()
    x, y = s.fresh(ty, "f"), s.fresh(ty, "f")
    both = adt.PatternTuple([adt.PatternConstructor(one, [adt.PatternVar(v)]) for v in (x, y)])
    first = adt.Clause(both, s.block([x, y], partial(s.of_type, ty), 1))
    rest = adt.Clause(adt.PatternWildcard(), s.of_type(ty))
    return adt.Match(relay.Tuple(picked), [first, rest])


def local_call(s: Scope) -> relay.Expr:
    """A closure bound by a let, called once or twice."""
    x = s.any_tensor()
    ty = s.type_of(x)
    func = function(s, [ty])
    out = s.type_of(func).ret_type
    name = s.fresh(relay.FuncType([ty], out), "g")
    call = relay.Call(name, [x])
    if out.dtype == "bool":
        return relay.Let(name, func, call)
    again = relay.Call(name, [s.of_type(ty)]) if s.chance(0.5) else call
    return relay.Let(name, func, s.small(relay.add(call, again)))


def global_call(s: Scope) -> relay.Expr:
    x, y = s.any_tensor(), s.any_tensor()
    func = function(s, [s.type_of(x), s.type_of(y)], closed=True)
    gvar = add_global(s, func.replace(ret_type=s.type_of(func).ret_type))
    return relay.Call(gvar, [x, y])


def loop(s: Scope) -> relay.Expr:
    """A recursive closure that counts down; its state may be a tuple."""
    state = s.any_tensor()
    ty: relay.Type = s.type_of(state)
    nested = s.chance(0.3)
    if nested:
        other = s.any_tensor()
        ty = relay.TupleType([ty, relay.TupleType([s.type_of(other)])])
        state = relay.Tuple([state, relay.Tuple([other])])
    name = s.fresh(relay.FuncType([INT, ty], ty), "loop")
    i, held = s.fresh(INT, "i"), s.fresh(ty, "s")
    parts: list[relay.Expr] = [i, held]
    if nested:
        parts = [i, relay.TupleGetItem(held, 0)]
    step = s.block(parts, partial(s.of_type, ty), 2)
    again = relay.Call(name, [i - relay.const(1), step])
    body = relay.If(relay.less(relay.const(0), i), again, held)
    out = relay.Let(name, relay.Function([i, held], body, ty), relay.Call(name, [count(s), state]))
    if not nested:
        return out
    return relay.TupleGetItem(out, 0)


def mutual_recursion(s: Scope) -> relay.Expr:
    """Two global functions that call each other."""
    state = s.any_tensor()
    ty = s.type_of(state)
    s.count += 1
    names = [relay.GlobalVar(f"{word}{s.count}") for word in ("even", "odd")]
    for gvar, other in (names, names[::-1]):
        i, held = s.fresh(INT, "i"), s.fresh(ty, "s")
        with s.closed():
            step = s.block([held, i], partial(s.of_type, ty), 1)
        again = relay.Call(other, [i - relay.const(1), step])
        body = relay.If(relay.less(relay.const(0), i), again, held)
        s.mod.update_func(gvar, relay.Function([i, held], body, ty))
    return relay.Call(names[0], [count(s), state])


def chain(s: Scope) -> relay.Expr:
    """A list that is made and folded."""
    _, link, end = s.mod.get_type("Chain")
    ty = s.type_of(s.a_number())
    made = end()
    for _ in range(s.rng.randint(0, 3)):
        made = link(s.of_type(ty), made)
    chain_type = s.mod.get_global_type_var("Chain")(ty)
    name = s.fresh(relay.FuncType([chain_type, ty], ty), "fold")
    xs, acc = s.fresh(chain_type, "xs"), s.fresh(ty, "acc")
    first, rest = s.fresh(ty, "x"), s.fresh(chain_type, "rest")
    joined = s.small(relay.add(acc, first))
    clauses = [
        adt.Clause(
            adt.PatternConstructor(link, [adt.PatternVar(first), adt.PatternVar(rest)]),
            relay.Call(name, [rest, joined]),
        ),
        adt.Clause(adt.PatternConstructor(end), acc),
    ]
    func = relay.Function([xs, acc], adt.Match(xs, clauses), ty)
    return relay.Let(name, func, relay.Call(name, [made, s.of_type(ty)]))


def tree(s: Scope) -> relay.Expr:
    """A tree that a global function sums up; it may be polymorphic in what it does to elements."""
    _, node, leaf = s.mod.get_type("Tree")
    ty = s.type_of(s.a_number())
    tree_type = s.mod.get_global_type_var("Tree")

    def grown(depth: int) -> relay.Expr:
        if depth == 0 or s.chance(0.3):
            return leaf()
        return node(grown(depth - 1), s.of_type(ty), grown(depth - 1))

    a = relay.TypeVar("A") if s.chance(0.5) else ty
    add_type = relay.FuncType([a, a], a)
    xs, zero, join = s.fresh(tree_type(a), "t"), s.fresh(a, "z"), s.fresh(add_type, "op")
    left, here, right = s.fresh(tree_type(a), "l"), s.fresh(a, "x"), s.fresh(tree_type(a), "r")
    s.count += 1
    gvar = relay.GlobalVar(f"sum_tree{s.count}")
    sums = [relay.Call(gvar, [side, zero, join]) for side in (left, right)]
    total = relay.Call(join, [relay.Call(join, [sums[0], here]), sums[1]])
    fields = [adt.PatternVar(v) for v in (left, here, right)]
    clauses = [
        adt.Clause(adt.PatternConstructor(node, fields), total),
        adt.Clause(adt.PatternConstructor(leaf), zero),
    ]
    variables = [a] if isinstance(a, relay.TypeVar) else None
    s.mod[gvar] = relay.Function([xs, zero, join], adt.Match(xs, clauses), a, variables)
    x, y = s.fresh(ty, "a"), s.fresh(ty, "a")
    op = relay.Function([x, y], s.small(relay.add(x, y)), ty)
    return relay.Call(gvar, [grown(2), s.of_type(ty), op])


def polymorphic(s: Scope) -> relay.Expr:
    """A function with a type parameter, called at two types."""
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    x, y = s.fresh(a, "x"), s.fresh(b, "y")
    pair = relay.Function([x, y], relay.Tuple([y, x]), relay.TupleType([b, a]), [a, b])
    name: relay.Expr
    if s.chance(0.5):
        name = add_global(s, pair)
    else:
        c, d = relay.TypeVar("C"), relay.TypeVar("D")
        swaps = relay.FuncType([c, d], relay.TupleType([d, c]), [c, d])
        name = s.fresh(swaps, "swap")
    p, q = s.any_tensor(), s.any_tensor()
    once = relay.Call(name, [p, q])
    twice = relay.TupleGetItem(relay.Call(name, [p, once]), 0)
    result = relay.TupleGetItem(twice, s.rng.randrange(2))
    return relay.Let(name, pair, result) if isinstance(name, relay.Var) else result


def higher_order(s: Scope) -> relay.Expr:
    """A function that takes a function and applies it twice."""
    x = s.any_tensor()
    ty = s.type_of(x)
    arrow = relay.FuncType([ty], ty)
    f, a = s.fresh(arrow, "f"), s.fresh(ty, "a")
    twice = relay.Function([f, a], relay.Call(f, [relay.Call(f, [a])]), ty)
    argument = endofunction(s, ty)
    if s.chance(0.3):
        return relay.Call(add_global(s, twice), [argument, x])
    name = s.fresh(relay.FuncType([arrow, ty], ty), "twice")
    return relay.Let(name, twice, relay.Call(name, [argument, x]))


def chosen_function(s: Scope) -> relay.Expr:
    """One of two closures, which a condition, a tuple, or a constructor holds."""
    x = s.any_tensor()
    ty = s.type_of(x)
    first, second = endofunction(s, ty), endofunction(s, ty)
    kind = s.rng.randrange(3)
    if kind == 0:
        return relay.Call(relay.If(condition(s), first, second), [x])
    if kind == 1:
        held = s.fresh(relay.TupleType([relay.FuncType([ty], ty)] * 2), "fs")
        item = relay.TupleGetItem(held, s.rng.randrange(2))
        return relay.Let(held, relay.Tuple([first, second]), relay.Call(item, [x]))
    one = choices(s)[0]
    f = s.fresh(relay.FuncType([ty], ty), "f")
    clauses = [
        adt.Clause(adt.PatternConstructor(one, [adt.PatternVar(f)]), relay.Call(f, [x])),
        adt.Clause(adt.PatternWildcard(), x),
    ]
    return adt.Match(one(first), clauses)


def returned_function(s: Scope) -> relay.Expr:
    """A function that returns a function, called with its two arguments."""
    x = s.any_tensor()
    ty = s.type_of(x)
    a = s.fresh(ty, "a")
    made = relay.Function([a], s.block([a], lambda: endofunction(s, ty), 1))
    return relay.Call(relay.Call(made, [s.of_type(ty)]), [x])


def cell(s: Scope, bindings: Bindings) -> relay.Expr:
    """A cell that is written, perhaps, and read."""
    x = s.any_tensor()
    ty = s.type_of(x)
    held = s.fresh(relay.RefType(ty), "r")
    bindings.append((held, relay.RefCreate(x)))
    kind = s.rng.randrange(4)
    unit = relay.TupleType([])
    if kind == 0:
        bindings.append((s.fresh(unit, "u"), relay.RefWrite(held, s.of_type(ty))))
    elif kind == 1:  # by a closure
        value = s.fresh(ty, "a")
        name = s.fresh(relay.FuncType([ty], unit), "set")
        bindings.append((name, relay.Function([value], relay.RefWrite(held, value), unit)))
        bindings.append((s.fresh(unit, "u"), relay.Call(name, [s.of_type(ty)])))
    elif kind == 2:  # by one branch, or by both
        writes = [relay.RefWrite(held, s.of_type(ty)), relay.Tuple([])]
        bindings.append((s.fresh(unit, "u"), relay.If(condition(s), *writes)))
    elif s.dtype_of(x) != "bool":  # by a loop, which adds to it
        name = s.fresh(relay.FuncType([INT], unit), "loop")
        i, now, done = s.fresh(INT, "i"), s.fresh(ty, "v"), s.fresh(unit, "u")
        grown = relay.RefWrite(held, s.small(relay.add(now, s.of_type(ty))))
        again = relay.Call(name, [i - relay.const(1)])
        step = relay.Let(now, relay.RefRead(held), relay.Let(done, grown, again))
        body = relay.If(relay.less(relay.const(0), i), step, relay.Tuple([]))
        bindings.append((name, relay.Function([i], body, unit)))
        bindings.append((s.fresh(unit, "u"), relay.Call(name, [count(s)])))
    read = s.fresh(ty, "v")
    bindings.append((read, relay.RefRead(held)))
    return read


CONSTRUCTS: tuple[tuple[int, Callable[[Scope], relay.Expr]], ...] = (
    (3, conditional), (2, matched), (1, matched_deeply), (2, local_call), (2, global_call),
    (2, loop), (1, mutual_recursion), (1, chain), (1, tree), (2, polymorphic), (1, higher_order),
    (1, chosen_function), (1, returned_function), (1, applied),
)  # fmt: skip


def construct(s: Scope, bindings: Bindings) -> relay.Expr:
    """A value that takes more than operators."""
    if s.chance(0.15):
        return cell(s, bindings)
    weights = [weight for weight, _ in CONSTRUCTS]
    return s.rng.choices([maker for _, maker in CONSTRUCTS], weights)[0](s)
