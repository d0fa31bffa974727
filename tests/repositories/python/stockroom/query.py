"""A small language to select movements, such as ``item = bolt and grams > 500``."""

from __future__ import annotations

import operator
import re
from typing import Callable, Iterable

from stockroom.ledger import Movement

Test = Callable[[Movement], bool]

OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

FIELDS = ("day", "grams", "item", "place")

_TOKEN = re.compile(r"""\s*(?:"([^"]*)"|(<=|>=|!=|[<>=()])|([\w.-]+))""")


class QueryError(ValueError):
    """Raised when a query cannot be understood."""


def tokenize(text: str) -> list[str]:
    """Split a query into words, quoted texts and operators."""
    tokens = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise QueryError(f"unexpected text at {position}: {text[position:]!r}")
        tokens.append(next(group for group in match.groups() if group is not None))
        position = match.end()
    return tokens


class _Parser:
    """A recursive descent parser in which ``and`` binds tighter than ``or``."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def parse(self) -> Test:
        test = self._either()
        if self._position < len(self._tokens):
            raise QueryError(f"unexpected {self._tokens[self._position]!r}")
        return test

    def _either(self) -> Test:
        tests = [self._both()]
        while self._accept("or"):
            tests.append(self._both())
        return lambda movement: any(test(movement) for test in tests)

    def _both(self) -> Test:
        tests = [self._single()]
        while self._accept("and"):
            tests.append(self._single())
        return lambda movement: all(test(movement) for test in tests)

    def _single(self) -> Test:
        if self._accept("not"):
            inner = self._single()
            return lambda movement: not inner(movement)
        if self._accept("("):
            inner = self._either()
            if not self._accept(")"):
                raise QueryError("missing )")
            return inner
        return self._comparison()

    def _comparison(self) -> Test:
        name, symbol, literal = self._next(), self._next(), self._next()
        if name not in FIELDS:
            raise QueryError(f"unknown field: {name}")
        if symbol not in OPERATORS:
            raise QueryError(f"unknown operator: {symbol}")
        compare = OPERATORS[symbol]
        if name == "grams":
            limit = int(literal)
            return lambda movement: compare(movement.grams, limit)
        return lambda movement: compare(str(getattr(movement, name)), literal)

    def _next(self) -> str:
        if self._position >= len(self._tokens):
            raise QueryError("the query ends too early")
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _accept(self, word: str) -> bool:
        if self._position < len(self._tokens) and self._tokens[self._position] == word:
            self._position += 1
            return True
        return False


def select(movements: Iterable[Movement], query: str) -> list[Movement]:
    """Return the movements that a query matches; an empty query matches all."""
    tokens = tokenize(query)
    if not tokens:
        return list(movements)
    test = _Parser(tokens).parse()
    return [movement for movement in movements if test(movement)]
