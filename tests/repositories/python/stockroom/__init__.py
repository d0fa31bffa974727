"""Stock movements, periods and routes for a small warehouse."""

from stockroom.amounts import format_amount, parse_amount
from stockroom.ledger import InsufficientStock, Ledger, Movement
from stockroom.periods import Period
from stockroom.routes import RouteMap

__all__ = [
    "InsufficientStock",
    "Ledger",
    "Movement",
    "Period",
    "RouteMap",
    "format_amount",
    "parse_amount",
]
