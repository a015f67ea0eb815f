"""Graphs of relay as functions of relax."""

from .translate import Translator, program_name

__all__ = ["Translator", "program_name"]
