"""Amounts of material, kept as whole grams."""

from __future__ import annotations

import re

GRAMS_PER_UNIT = {"g": 1, "kg": 1_000, "t": 1_000_000}

ALIASES = {
    "gram": "g",
    "grams": "g",
    "kilo": "kg",
    "kilos": "kg",
    "tonne": "t",
    "tonnes": "t",
}

_AMOUNT = re.compile(r"([-+]?[\d,]*\.?\d+)\s*([A-Za-z]+)")


def canonical_unit(name: str) -> str:
    """Return the short name of a unit, whatever its spelling or case."""
    key = name.strip().lower()
    key = ALIASES.get(key, key)
    if key not in GRAMS_PER_UNIT:
        raise ValueError(f"unknown unit: {name!r}")
    return key


def parse_amount(text: str) -> int:
    """Read text such as ``"1,250 kg"`` and return the amount in grams."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"not an amount: {text!r}")
    number, unit = match.groups()
    return round(float(number.replace(",", "")) * GRAMS_PER_UNIT[canonical_unit(unit)])


def convert(grams: int, unit: str) -> float:
    """Express an amount in another unit, with its fraction."""
    return grams / GRAMS_PER_UNIT[canonical_unit(unit)]


def format_amount(grams: int) -> str:
    """Show an amount in the largest unit of which it holds at least one."""
    for unit in ("t", "kg"):
        if abs(grams) >= GRAMS_PER_UNIT[unit]:
            return f"{convert(grams, unit):,.2f} {unit}"
    return f"{grams} g"


def split_evenly(total: int, parts: int) -> list[int]:
    """Split a total into whole shares that differ by one at most, larger first."""
    if parts < 1:
        raise ValueError("parts must be positive")
    share, rest = divmod(total, parts)
    return [share + 1] * rest + [share] * (parts - rest)
