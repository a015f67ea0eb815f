"""
int8 and bfloat16
=================

Narrow numbers are faster where the processor multiplies them faster: AVX512_VNNI and AVX-VNNI for bytes,
AVX512_BF16 for bfloat16. Elsewhere the same programs run, in wider types.
"""

import numpy as np

import tvm
from tvm import relay
from tvm.contrib import graph_executor

rng = np.random.default_rng(0)
image = rng.normal(size=(1, 8, 16, 16)).astype("float32")
data = relay.var("data", shape=image.shape)
filters = relay.const(rng.normal(size=(16, 8, 3, 3)).astype("float32"))
features = relay.nn.relu(relay.nn.conv2d(data, filters, padding=1, kernel_size=3, channels=16))
scores = relay.nn.dense(
    relay.nn.batch_flatten(relay.nn.global_avg_pool2d(features)),
    relay.const(rng.normal(size=(10, 16)).astype("float32")),
)
mod = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([data], scores)))


def run(module):
    """The scores of a program for the image."""
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(module, target="llvm -mcpu=native")
    executor = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    executor.run(data=image)
    return executor.get_output(0).numpy().astype("float32")


wanted = run(mod)

# %%
# bfloat16
# --------
# A pass. Sums are float32; what would suffer stays in float32.

narrow = relay.transform.ToMixedPrecision("bfloat16")(mod)
found = run(narrow)
print("largest difference", abs(found - wanted).max(), "of", abs(wanted).max())
np.testing.assert_allclose(found, wanted, rtol=0.05, atol=0.05 * abs(wanted).max())

# %%
# int8
# ----
# Models with QuantizeLinear and DequantizeLinear, such as ONNX Runtime's quantiser writes, are imported as they are and
# need no pass. A model in float32 is quantised here, with inputs like those that it will see. By default the first
# convolution and the dense layers stay in float32, where networks are most sensitive. ``kl_divergence`` finds tighter ranges than
# ``percentile`` does, from many inputs: of the one image here the last layer sees sixteen numbers, which is no
# distribution.

with relay.quantize.qconfig(
    calibrate_mode="percentile", weight_scale="max", skip_conv_layers=[], skip_dense_layer=False
):
    quantised = relay.quantize.quantize(mod, {}, dataset=[{"data": image}])
found = run(quantised)
print("largest difference", abs(found - wanted).max(), "of", abs(wanted).max())
assert 0 < abs(found - wanted).max() < 0.1 * abs(wanted).max()

# %%
# What stayed wide, and why
# -------------------------

print(relay.transform.precision_report(narrow, "llvm -mcpu=cooperlake"))
print(relay.transform.precision_report(quantised, "llvm -mcpu=cascadelake"))

# %%
# :doc:`/low_precision` has the details, PyTorch's quantised modules, and rules for operators of yours.
