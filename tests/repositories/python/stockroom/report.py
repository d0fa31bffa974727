"""Plain-text reports about a ledger."""

from __future__ import annotations

from typing import Optional, Sequence

from stockroom.amounts import format_amount
from stockroom.ledger import Ledger, Movement
from stockroom.query import select


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows below their headers, each column as wide as its longest cell."""
    widths = [len(header) for header in headers]
    for row in rows:
        for index, cell in enumerate(row):
            widths[index] = max(widths[index], len(cell))
    lines = [headers, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines
    )


def pages(lines: Sequence[str], size: int) -> list[list[str]]:
    """Break lines into pages of the given size; the last may be shorter."""
    if size < 1:
        raise ValueError("size must be positive")
    return [list(lines[start : start + size]) for start in range(0, len(lines), size)]


def shorten(text: str, width: int) -> str:
    """Cut a text to a width, ending it with dots when something is left out."""
    if len(text) <= width:
        return text
    return text[: width - 3].rstrip() + "..."


def group_by_tag(
    movements: Sequence[Movement], groups: Optional[dict[str, list[Movement]]] = None
) -> dict[str, list[Movement]]:
    """Collect movements under each of their tags, adding to groups if given."""
    groups = {} if groups is None else groups
    for movement in movements:
        for tag in movement.tags or ("untagged",):
            groups.setdefault(tag, []).append(movement)
    return groups


def heaviest(ledger: Ledger, count: int) -> list[tuple[str, int]]:
    """Return the items with the largest stock, equal ones in order of name."""
    totals = {movement.item: ledger.balance(movement.item) for movement in ledger}
    ranked = sorted(totals.items(), key=lambda pair: (-pair[1], pair[0]))
    return ranked[:count]


def stock_report(ledger: Ledger, query: str = "") -> str:
    """Show the net amount of each item at each place in a table, sorted by both."""
    totals: dict[tuple[str, str], int] = {}
    for movement in select(ledger, query):
        key = (movement.place, movement.item)
        totals[key] = totals.get(key, 0) + movement.grams
    rows = [[place, item, format_amount(grams)] for (place, item), grams in sorted(totals.items())]
    return table(["place", "item", "amount"], rows)
