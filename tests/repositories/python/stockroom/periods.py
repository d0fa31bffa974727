"""Calendar periods whose first and last days both count."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Iterable

ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, order=True)
class Period:
    """The days from ``start`` to ``end``, both included."""

    start: date
    end: date

    def __post_init__(self) -> None:
        if self.end < self.start:
            raise ValueError("a period cannot end before it starts")

    @property
    def days(self) -> int:
        """The number of days in the period."""
        return (self.end - self.start).days + 1

    def __contains__(self, day: date) -> bool:
        return self.start <= day <= self.end

    def overlaps(self, other: Period) -> bool:
        """Tell whether the two periods share a day."""
        return self.start <= other.end and other.start <= self.end


def add_months(day: date, months: int) -> date:
    """Move a date by whole months, falling back to the last day of a shorter month."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return date(year, month + 1, min(day.day, last))


def merge(periods: Iterable[Period]) -> list[Period]:
    """Join the periods that overlap or follow each other without a gap."""
    merged: list[Period] = []
    for period in sorted(periods):
        if merged and period.start <= merged[-1].end + ONE_DAY:
            previous = merged.pop()
            period = Period(previous.start, max(previous.end, period.end))
        merged.append(period)
    return merged


def gaps(periods: Iterable[Period], within: Period) -> list[Period]:
    """List the parts of ``within`` that no period covers."""
    free = []
    cursor = within.start
    for period in merge(periods):
        if not period.overlaps(within):
            continue
        if period.start > cursor:
            free.append(Period(cursor, period.start - ONE_DAY))
        cursor = period.end + ONE_DAY
    if cursor <= within.end:
        free.append(Period(cursor, within.end))
    return free


def working_days(period: Period, holidays: Iterable[date] = ()) -> int:
    """Count the days from Monday to Friday that are not holidays."""
    closed = set(holidays)
    count = 0
    day = period.start
    while day <= period.end:
        if day.weekday() < 5 and day not in closed:
            count += 1
        day += ONE_DAY
    return count
