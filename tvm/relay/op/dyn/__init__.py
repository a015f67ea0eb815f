"""Operators whose result's shape is a value: reached through `relay.reshape(x, expression)`."""

from . import nn, tensor, transform
