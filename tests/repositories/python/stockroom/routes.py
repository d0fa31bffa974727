"""Distances and routes between the places of a warehouse."""

from __future__ import annotations

import heapq
from collections import deque


class RouteMap:
    """An undirected map of places joined by lanes of known length."""

    def __init__(self) -> None:
        self._lanes: dict[str, dict[str, int]] = {}

    def connect(self, first: str, second: str, length: int) -> None:
        """Join two places; the shorter lane stays if they are joined already."""
        if length <= 0:
            raise ValueError("a lane must have a positive length")
        for place, other in ((first, second), (second, first)):
            lanes = self._lanes.setdefault(place, {})
            lanes[other] = min(length, lanes.get(other, length))

    def neighbours(self, place: str) -> list[str]:
        """Return the places next to this one, nearest first, then by name."""
        lanes = self._lanes.get(place, {})
        return sorted(lanes, key=lambda other: (lanes[other], other))

    def within(self, start: str, hops: int) -> set[str]:
        """Return the places that at most ``hops`` lanes separate from the start."""
        seen = {start}
        queue = deque([(start, 0)])
        while queue:
            place, depth = queue.popleft()
            if depth == hops:
                continue
            for other in self.neighbours(place):
                if other not in seen:
                    seen.add(other)
                    queue.append((other, depth + 1))
        return seen

    def shortest(self, start: str, goal: str) -> tuple[int, list[str]]:
        """Return the length of the shortest route and the places along it."""
        if start not in self._lanes or goal not in self._lanes:
            raise KeyError(f"unknown place: {start if start not in self._lanes else goal}")
        best = {start: 0}
        heap = [(0, start, [start])]
        while heap:
            length, place, path = heapq.heappop(heap)
            if place == goal:
                return length, path
            if length > best[place]:
                continue
            for other, lane in self._lanes[place].items():
                total = length + lane
                if total < best.get(other, total + 1):
                    best[other] = total
                    heapq.heappush(heap, (total, other, path + [other]))
        raise LookupError(f"no route from {start} to {goal}")

    def simple_routes(self, start: str, goal: str, lanes: int) -> int:
        """Count the routes of at most ``lanes`` lanes that visit no place twice."""

        def count(place: str, left: int, seen: frozenset[str]) -> int:
            if place == goal:
                return 1
            if left == 0:
                return 0
            return sum(
                count(other, left - 1, seen | {other})
                for other in self.neighbours(place)
                if other not in seen
            )

        return count(start, lanes, frozenset({start}))
