"""A mapping that forgets what was used least recently."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Callable, Hashable


class LRUCache:
    """Hold at most ``capacity`` values and drop the least recently used first."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be positive")
        self.capacity = capacity
        self.hits = 0
        self.misses = 0
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def get(self, key: Hashable, default: Any = None) -> Any:
        """Return the value of a key and mark it as used."""
        if key not in self._values:
            self.misses += 1
            return default
        self.hits += 1
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: Hashable, value: Any) -> None:
        """Store a value, making room for it when the cache is full."""
        self._values[key] = value
        self._values.move_to_end(key)
        self._shrink()

    def fetch(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return the value of a key, computing and storing it on a miss."""
        if key in self._values:
            return self.get(key)
        self.misses += 1
        value = compute()
        self.put(key, value)
        return value

    def resize(self, capacity: int) -> None:
        """Change the capacity, dropping old values if there are too many."""
        if capacity < 1:
            raise ValueError("capacity must be positive")
        self.capacity = capacity
        self._shrink()

    @property
    def hit_rate(self) -> float:
        """The share of look-ups that found a value, or zero before the first."""
        lookups = self.hits + self.misses
        return self.hits / lookups if lookups else 0.0

    def _shrink(self) -> None:
        while len(self._values) > self.capacity:
            self._values.popitem(last=False)
