"""
Your own pass
=============

A pass is a function from module to module. Here is one that rewrites a pattern of relay, one that
changes loops, and an instrument that watches both.
"""

import numpy as np

import tvm
from tvm import relay, te, tir
from tvm.ir.visitor import Rewriter
from tvm.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard

# %%
# A pattern of the graph
# ----------------------
# ``x * sigmoid(x)`` has a name, ``silu``; here it becomes a cheaper function. The callback says what is
# looked for, and what stands in its place.


class SiluToHardSwish(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("multiply")(self.x, is_op("sigmoid")(self.x))

    def callback(self, pre, post, node_map):
        x = node_map[self.x][0]
        gate = relay.clip(x + relay.const(3.0), 0.0, 6.0) / relay.const(6.0)
        return x * gate


@relay.transform.function_pass(opt_level=1, name="HardSwish")
def hard_swish(function, mod, context):
    return rewrite(SiluToHardSwish(), function)


x = relay.var("x", shape=(8,))
mod = tvm.IRModule.from_expr(relay.Function([x], x * relay.sigmoid(x)))
mod = tvm.transform.Sequential([relay.transform.InferType(), hard_swish])(mod)
print(mod)

# %%
# Loops
# -----
# A rewriter visits every node and returns what stands in its place; nodes that are not mentioned stay as
# they are. This one makes sums begin at one.


class ZeroToOne(Rewriter):
    def visit_float_imm(self, number):
        return tir.FloatImm(number.dtype, 1.0) if number.value == 0.0 else number


@tir.transform.prim_func_pass(opt_level=0, name="tutorial.ZeroToOne")
def zero_to_one(function, mod, context):
    return function.with_body(ZeroToOne().visit(function.body))


A = te.placeholder((4, 8), name="A")
k = te.reduce_axis((0, 8), name="k")
B = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="B")
schedule = te.create_schedule(B.op)

# %%
# A pass is called with a module, or joins the pipeline of ``build``: phase 3 is the last before code is generated.

with tvm.transform.PassContext(config={"tir.add_lower_pass": [(3, zero_to_one)]}):
    changed = tvm.build(schedule, [A, B], target="llvm")
a, b = np.ones((4, 8), "float32"), np.zeros(4, "float32")
changed(a, b)
print(b)
assert (b == 9).all()

# %%
# Who ran
# -------
# An instrument is told of each pass before and after it. ``TVM_DUMP_IR=folder`` writes the program after every pass
# that changed it, without any code.


@tvm.instrument.pass_instrument
class Log:
    def __init__(self):
        self.names = []

    def run_after_pass(self, mod, info):
        self.names.append(info.name)


log = Log()
with tvm.transform.PassContext(instruments=[log]):
    tvm.lower(schedule, [A, B])
print(len(log.names), "passes, among them", *log.names[:4])
