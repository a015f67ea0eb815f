"""Operators on images."""

from .image import *
from .image import __all__
