"""The stock of each item at each place, as a list of movements."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Iterable, Iterator, Optional

from stockroom.amounts import parse_amount


class InsufficientStock(Exception):
    """Raised when more is taken from a place than it holds."""


@dataclass(frozen=True)
class Movement:
    """A change of the stock of one item at one place."""

    day: date
    item: str
    place: str
    grams: int
    tags: tuple[str, ...] = field(default=())


class Ledger:
    """Records movements and keeps the balances that follow from them."""

    def __init__(self, movements: Optional[Iterable[Movement]] = None) -> None:
        self._movements: list[Movement] = []
        self._balances: dict[tuple[str, str], int] = {}
        for movement in movements or []:
            self.record(movement)

    def __len__(self) -> int:
        return len(self._movements)

    def __iter__(self) -> Iterator[Movement]:
        return iter(self._movements)

    def record(self, movement: Movement) -> None:
        """Add a movement, refusing one that would leave a negative balance."""
        key = (movement.item, movement.place)
        balance = self._balances.get(key, 0) + movement.grams
        if balance < 0:
            raise InsufficientStock(f"not enough {movement.item} at {movement.place}")
        self._balances[key] = balance
        self._movements.append(movement)

    def receive(self, day: date, item: str, place: str, amount: str) -> Movement:
        """Record the arrival of an amount written as text."""
        movement = Movement(day, item, place, parse_amount(amount))
        self.record(movement)
        return movement

    def transfer(self, day: date, item: str, source: str, target: str, grams: int) -> None:
        """Move stock of an item from one place to another."""
        if grams <= 0:
            raise ValueError("a transfer must move a positive amount")
        self.record(Movement(day, item, source, -grams, ("transfer",)))
        self.record(Movement(day, item, target, grams, ("transfer",)))

    def balance(self, item: str, place: Optional[str] = None) -> int:
        """Return the stock of an item at one place, or at all of them."""
        if place is not None:
            return self._balances.get((item, place), 0)
        return sum(grams for (name, _), grams in self._balances.items() if name == item)

    def balance_on(self, item: str, day: date) -> int:
        """Return the stock of an item at the end of a day."""
        return sum(m.grams for m in self._movements if m.item == item and m.day <= day)

    def by_place(self) -> dict[str, dict[str, int]]:
        """Return the items in stock at each place, leaving out what has run out."""
        places: dict[str, dict[str, int]] = {}
        for (item, place), grams in self._balances.items():
            if grams:
                places.setdefault(place, {})[item] = grams
        return places

    def lowest_balance(self, item: str) -> int:
        """Return the lowest stock an item ever had after a movement."""
        running = 0
        lowest = None
        for movement in self._movements:
            if movement.item != item:
                continue
            running += movement.grams
            lowest = running if lowest is None else min(lowest, running)
        return 0 if lowest is None else lowest

    def copy(self) -> Ledger:
        """Return a ledger that can change without changing this one."""
        other = Ledger()
        other._movements = list(self._movements)
        other._balances = dict(self._balances)
        return other
