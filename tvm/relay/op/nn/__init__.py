"""Neural-network operators."""

from .nn import *
from .nn import __all__
