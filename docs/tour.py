"""A tour: the life of one matrix multiplication, from `te.compute` to assembly.

Run it (`python docs/tour.py`) or read it: each step states what happens, does it, and checks what
it claims. The names on the way are the folders of the package, in the order of its layers.

    te  ->  schedule  ->  tir  ->  passes  ->  LLVM  ->  object code  ->  a packed function
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import tvm
from tvm import relay, te, tir
from tvm.contrib import graph_executor
from tvm.ir import structural_equal
from tvm.ir.visitor import Rewriter, Visitor
from tvm.tir.interp import interpret

SIZE = 64


def chapter(number: int, title: str) -> None:
    """Announce a step."""
    print(f"\n{'=' * 80}\n{number}. {title}\n{'=' * 80}")


# 1. A program is a description of tensors --------------------------------------------------------
#
# `te.placeholder` is an input, `te.compute` says what one element is. Nothing runs here: the body
# of the lambda is called once, with symbolic indices, and leaves an expression behind. The reduction
# over `k` is part of that expression.

chapter(1, "te: what is computed")

A = te.placeholder((SIZE, SIZE), name="A")
B = te.placeholder((SIZE, SIZE), name="B")
k = te.reduce_axis((0, SIZE), name="k")
C = te.compute((SIZE, SIZE), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")

print(C.op.body[0])
assert [tensor.name for tensor in C.op.input_tensors] == ["A", "B"]

# 2. Everything is a node -------------------------------------------------------------------------
#
# The expression is a tree of nodes (`ir/node.py`). A node class is declared by its annotated fields;
# the metaclass generates `__init__`, `children`, `map_children`, `replace` and records what each
# field is: a child, a plain value, a binder of variables, a reference to something defined elsewhere.
# Visitors, structural equality, JSON and the printer all read those roles.

chapter(2, "ir: nodes and visitors")

reduction = C.op.body[0]
print(type(reduction).__name__, "has the fields", [f.name for f in reduction.node_fields])


class LoadCounter(Visitor):
    """Counts reads of tensors: methods are named after node classes."""

    def __init__(self) -> None:
        self.count = 0

    def visit_producer_load(self, load: tir.ProducerLoad) -> None:
        self.count += 1
        self.visit_children(load)


counter = LoadCounter()
counter.visit(reduction)
print("the body reads", counter.count, "tensors")
assert counter.count == 2

# A Rewriter returns nodes. One that changes nothing returns the very same object: passes can tell
# at no cost that they had nothing to do.

assert Rewriter().visit(reduction) is reduction

# 3. Expressions simplify themselves, to a degree -------------------------------------------------
#
# There are two levels of construction. `tir.Add(a, b)` builds exactly that. `a + b` converts numbers,
# unifies types and folds constants. Real simplification is the business of `arith`: tables of rules
# such as `rule(x*c0 + y*c1, (x + y*fold(c1 // c0)) * c0, when=...)`, and bounds of variables.

chapter(3, "arith: reasoning about integers")

x = tir.Var("x", "int32")
print(tir.Add(tir.IntImm("int32", 1), tir.IntImm("int32", 2)), " versus ", tir.const(1) + 2)

analyzer = tvm.arith.Analyzer()
analyzer.bind(x, tvm.ir.Range(0, 16))
for expression in ((x // 4) * 4 + x % 4, tir.floordiv(x + 16, 16), tir.max(x, 0) - x):
    print(f"{expression}   ->   {analyzer.simplify(expression)}")
assert analyzer.can_prove(x // 4 < 4)
bound = analyzer.const_int_bound(x * 3 + 1)
assert (bound.min_value, bound.max_value) == (1, 46)

# 4. The default schedule -------------------------------------------------------------------------
#
# A schedule says how a tensor is computed. Fresh from `create_schedule` it is the naive loop nest.
# `tvm.lower` turns it into a function of the loop language, `tir`, whose text is TVMScript: it can be
# parsed back, and the tests of passes are written in it.

chapter(4, "te.schedule: how it is computed")

schedule = te.create_schedule(C.op)
naive = tvm.lower(schedule, [A, B, C], simple_mode=True)
print(naive)

# 5. Primitives change the loops, never the result ------------------------------------------------
#
# Tiling for the cache, a vectorised inner loop, an accumulator of its own (`cache_write`) that stays
# in registers, and parallel rows of tiles. Each primitive edits the relations between loop variables
# (split, fuse) or a stage's place in the nest of another stage (compute_at). What region of which
# tensor is needed where is found by bound inference, not written by hand.

chapter(5, "scheduling primitives")

schedule = te.create_schedule(C.op)
accumulator = schedule.cache_write(C, "global")
row, column = C.op.axis
row_outer, row_inner = schedule[C].split(row, factor=4)
column_outer, column_inner = schedule[C].split(column, factor=16)
schedule[C].reorder(row_outer, column_outer, row_inner, column_inner)
schedule[C].vectorize(column_inner)
schedule[C].parallel(row_outer)

schedule[accumulator].compute_at(schedule[C], column_outer)
tile_row, tile_column = schedule[accumulator].op.axis
(reduce_axis,) = schedule[accumulator].op.reduce_axis
reduce_outer, reduce_inner = schedule[accumulator].split(reduce_axis, factor=4)
schedule[accumulator].reorder(reduce_outer, reduce_inner, tile_row, tile_column)
schedule[accumulator].unroll(tile_row)
schedule[accumulator].vectorize(tile_column)

tiled = tvm.lower(schedule, [A, B, C], simple_mode=True)
print(tiled)

# 6. The meaning is checkable at every stage ------------------------------------------------------
#
# `tir/interp.py` is the reference semantics, on numpy: slow, simple, and it checks every access
# against the bounds of its buffer. Back ends and schedules are tested against it.

chapter(6, "tir.interp: the reference semantics")

rng = np.random.default_rng(0)
a, b = [rng.standard_normal((SIZE, SIZE)).astype("float32") for _ in range(2)]
outputs = []
for program in (naive, tiled):
    out = np.zeros((SIZE, SIZE), "float32")
    interpret(program["main"], a, b, out)
    outputs.append(out)
    print("largest difference from numpy:", np.abs(out - a @ b).max())
    assert np.allclose(out, a @ b, rtol=1e-4, atol=1e-4)

# 7. Passes ---------------------------------------------------------------------------------------
#
# `tvm.lower` ran a pipeline (`tir/pipeline.py`, one page): buffers were flattened to one dimension,
# expressions simplified, loops vectorised and unrolled, storage planned. A pass is a function from
# module to module, in a file of its own whose docstring shows the program before and after.
# `PassContext` carries the options, and instruments watch.

chapter(7, "passes")


@tvm.instrument.pass_instrument
class PassLog:
    """Notes the passes that changed something."""

    def __init__(self) -> None:
        self.changed: list[str] = []
        self.before: object = None

    def run_before_pass(self, mod: tvm.IRModule, info: object) -> None:
        self.before = mod

    def run_after_pass(self, mod: tvm.IRModule, info: object) -> None:
        if mod is not self.before:
            self.changed.append(info.name)  # type: ignore[attr-defined]


log = PassLog()
with tvm.transform.PassContext(instruments=[log]):
    tvm.lower(schedule, [A, B, C])
print("changed the program:", ", ".join(dict.fromkeys(log.changed)))
assert "tir.VectorizeLoop" in log.changed

# Wrong options are rejected where they are given, with a suggestion.

try:
    tvm.transform.PassContext(config={"tir.UnrolLoop": {}})
except tvm.TVMError as error:
    print(error)

# 8. A pass of your own ---------------------------------------------------------------------------
#
# `substitute`, `post_order_visit` and the visitors are what passes are written with. This one starts
# sums at one; `structural_equal` compares programs up to the names of bound variables.

chapter(8, "a pass of your own")


class ZeroToOne(Rewriter):
    """Starts sums at one instead of zero."""

    def visit_float_imm(self, imm: tir.FloatImm) -> tir.FloatImm:
        return tir.FloatImm(imm.dtype, 1.0) if imm.value == 0.0 else imm


@tvm.tir.transform.prim_func_pass(opt_level=0)
def start_at_one(func: tir.PrimFunc, mod: tvm.IRModule, ctx: object) -> tir.PrimFunc:
    return func.with_body(ZeroToOne().visit(func.body))


changed = start_at_one(naive)
assert not structural_equal(changed, naive) and structural_equal(naive, naive)
out = np.zeros((SIZE, SIZE), "float32")
interpret(changed["main"], a, b, out)
assert np.allclose(out, a @ b + 1, rtol=1e-4, atol=1e-4)
print("the result is one more everywhere")

# 9. Code -----------------------------------------------------------------------------------------
#
# `tvm.build` lowers further: the function gets the packed calling convention, with checks of every
# argument's type, shape and device; then LLVM makes object code of it. The module is a runtime object:
# the compiled function is called with arrays, in place.

chapter(9, "codegen: LLVM and assembly")

library = tvm.build(schedule, [A, B, C], target="llvm", name="matmul")
matmul = library["matmul"]
device = tvm.cpu(0)
arrays = [tvm.nd.array(value, device) for value in (a, b, np.zeros((SIZE, SIZE), "float32"))]
matmul(*arrays)
print("largest difference from numpy:", np.abs(arrays[2].numpy() - a @ b).max())
assert np.allclose(arrays[2].numpy(), a @ b, rtol=1e-4, atol=1e-4)

assembly = library.get_source("asm")
multiply_adds = [line.strip() for line in assembly.splitlines() if "vfmadd" in line]
print(f"{len(multiply_adds)} fused multiply-adds in the assembly, among them")
print("\n".join(multiply_adds[:3]))

# Wrong arguments give one clear error: who requires what, and what was found.

try:
    matmul(arrays[0], arrays[1], tvm.nd.array(np.zeros((SIZE, SIZE), "float64")))
except TypeError as error:
    print(f"TypeError: {error}")
else:
    raise AssertionError("a float64 result has to be rejected")

# 10. Time ----------------------------------------------------------------------------------------

chapter(10, "time")

naive_library = tvm.build(te.create_schedule(C.op), [A, B, C], target="llvm")
times = {}
for name, module in (("naive", naive_library), ("tiled", library)):
    evaluator = module.time_evaluator(module.entry_name, device, number=10, repeat=3)
    times[name] = evaluator(*arrays).min
    print(f"{name}: {2 * SIZE**3 / times[name] / 1e9:.1f} GFLOP/s")

# 11. Shipping it ---------------------------------------------------------------------------------
#
# `export_library` writes a shared object. It is loaded by any program that links the runtime, in
# Python or not (see `native/include/tvm/runtime`).

chapter(11, "a library on disk")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "matmul.so"
    library.export_library(str(path))
    loaded = tvm.runtime.load_module(str(path))
    result = tvm.nd.array(np.zeros((SIZE, SIZE), "float32"))
    loaded["matmul"](arrays[0], arrays[1], result)
    print(
        "loaded from",
        path.name,
        "- the same result:",
        np.array_equal(result.numpy(), arrays[2].numpy()),
    )
    assert np.array_equal(result.numpy(), arrays[2].numpy())

# 12. One level up --------------------------------------------------------------------------------
#
# Models are graphs of operators: relay. An operator is one record with all its facets - how its type
# is inferred, its te computation, its schedules, how it fuses. `relay.build` infers types, folds
# constants, fuses operators, and lowers each fused function through everything above.

chapter(12, "relay: graphs of operators")

data = relay.var("data", shape=(SIZE, SIZE))
weight = relay.var("weight", shape=(SIZE, SIZE))
body = relay.nn.relu(relay.nn.dense(data, weight) + relay.const(1.0))
mod = tvm.IRModule.from_expr(relay.Function([data, weight], body))
print(relay.transform.InferType()(mod))

with tvm.transform.PassContext(opt_level=3):
    lib = relay.build(mod, target="llvm", params={"weight": b.T.copy()})
module = graph_executor.GraphModule(lib["default"](device))
module.run(data=a)
expected = np.maximum(a @ b + 1, 0)
print("largest difference from numpy:", np.abs(module.get_output(0).numpy() - expected).max())
assert np.allclose(module.get_output(0).numpy(), expected, rtol=1e-4, atol=1e-4)
print("\nEnd of the tour. Next: tir/transform/unroll_loop.py shows how a pass reads,")
print("arith/rules how rules do, relay/op how operators do.")
