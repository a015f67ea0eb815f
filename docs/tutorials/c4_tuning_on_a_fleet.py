"""
Tuning on boards and fleets
===========================

A tracker knows which machines are free; each of them runs a server, which measures what it is sent. Here all of
them are processes of this machine, so that the page runs anywhere: on real boards only the addresses differ.
"""

import tempfile
from pathlib import Path

import numpy as np

import tvm
from tvm import autotvm, rpc, te
from tvm.rpc.server import Server
from tvm.rpc.tracker import Tracker

# %%
# A tracker and a board
# ---------------------
# In shells these are
#
# .. code-block:: console
#
#    $ python -m tvm.exec.rpc_tracker
#    $ python -m tvm.exec.rpc_server --tracker 127.0.0.1:9190 --key board
#
# and ``tvm_rpc server`` is the same server without Python. All listen on this machine only, unless a key file says
# who is let in: :doc:`/rpc`.

tracker = Tracker("127.0.0.1", port=9190, port_end=9290)
server = Server(
    "127.0.0.1", port=9091, port_end=9190, key="board", tracker_addr=("127.0.0.1", tracker.port)
)

# %%
# A function on the board
# -----------------------
# Built here, sent there, called as if it were here.

A = te.placeholder((1024,), name="A")
B = te.compute((1024,), lambda i: A[i] + 1.0, name="B")
library = tvm.build(te.create_schedule(B.op), [A, B], target="llvm", name="add_one")
path = Path(tempfile.mkdtemp()) / "add_one.so"
library.export_library(path)

session = rpc.connect_tracker("127.0.0.1", tracker.port).request("board")
session.upload(path)
remote = session.load_module("add_one.so")
device = session.cpu()
a = tvm.nd.array(np.arange(1024, dtype="float32"), device)
b = tvm.nd.empty((1024,), device=device)
remote["add_one"](a, b)
np.testing.assert_array_equal(b.numpy(), np.arange(1024) + 1)
print(remote.time_evaluator("add_one", device, number=10)(a, b))
del a, b, remote, session, device

# %%
# Measuring on all boards of a key
# --------------------------------
# ``RPCRunner`` asks the tracker for as many boards as there are, and builds here with the compiler of the target. For
# boards of another architecture name it, ``llvm -mtriple=aarch64-linux-gnu``, and its linker:
# ``LocalBuilder(build_func=tvm.contrib.cc.cross_compiler("aarch64-linux-gnu-gcc"))``.


@autotvm.template("tutorial/scale")
def scale(n):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] * 2.0, name="B")
    schedule = te.create_schedule(B.op)
    config = autotvm.get_config()
    config.define_split("tile", B.op.axis[0], num_outputs=2)
    _, inner = config["tile"].apply(schedule, B, B.op.axis[0])
    schedule[B].vectorize(inner)
    return schedule, [A, B]


task = autotvm.task.create("tutorial/scale", args=(64,), target="llvm -mcpu=native")
tuner = autotvm.tuner.RandomTuner(task)
tuner.tune(
    n_trial=3,
    measure_option=autotvm.measure_option(
        builder=autotvm.LocalBuilder(timeout=60),
        runner=autotvm.RPCRunner("board", "127.0.0.1", tracker.port, number=2, timeout=60),
    ),
)
print(tuner.best_config)
server.terminate()
tracker.terminate()

# %%
# A cluster
# ---------
# Where many machines both build and measure, Dask keeps them: ``pip install "classic-tvm[fleet]"``.
#
# .. code-block:: console
#
#    $ dask scheduler
#    $ dask worker scheduler:8786 --nthreads 8
#    $ tvmc tune model.onnx --target "llvm -mcpu=znver4" --dask scheduler:8786 -o records.log
