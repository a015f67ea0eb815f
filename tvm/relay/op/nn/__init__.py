"""Neural-network operators."""

from . import arm_channels, attention, tensor_cores
from .nn import *
from .nn import __all__
