"""Neural-network operators."""

from . import attention, tensor_cores
from .nn import *
from .nn import __all__
