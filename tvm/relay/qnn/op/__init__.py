"""Operators on quantised tensors: `relay.qnn.op.conv2d` and so on."""

from . import canonicalizations, legalizations, op, qnn
from .op import register_qnn_canonicalize, register_qnn_legalize
from .qnn import *
