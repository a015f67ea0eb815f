"""Back ends of relax."""

from . import contrib

__all__ = ["contrib"]
