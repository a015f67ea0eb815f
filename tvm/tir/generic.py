"""The arithmetic functions under the names that libraries of operators know."""

from .op import add, cast, floordiv, multiply, subtract
from .op import div as divide

__all__ = ["add", "cast", "divide", "floordiv", "multiply", "subtract"]
