"""Schedules for devices with blocks of threads: one for all operators, from what their stages read."""

from .elements import schedule_injective, schedule_injective_from_existing
from .schedule import schedule

__all__ = ["schedule", "schedule_injective", "schedule_injective_from_existing"]
