"""The dialect of quantised networks: operators with scales and zero points.

qnn.dense(%x, %w, 3, 0, %s, %t)    ->    nn.dense(%x, %w, out_dtype="int32") - 3 * sum(%w)
"""

from . import op, transform
from .op.qnn import *
