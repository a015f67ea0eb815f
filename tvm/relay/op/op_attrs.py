"""All attribute records, under the classic module name."""

from __future__ import annotations
