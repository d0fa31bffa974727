from datetime import date

import pytest

from stockroom.ledger import Movement
from stockroom.query import QueryError, select, tokenize

MOVEMENTS = [
    Movement(date(2023, 5, 1), "bolt", "hall", 300),
    Movement(date(2023, 5, 2), "nut", "hall", 1_500),
    Movement(date(2023, 5, 9), "wing nut", "shed", 90),
]


def grams(query):
    return [movement.grams for movement in select(MOVEMENTS, query)]


def test_tokenize_operators_and_words():
    assert tokenize("grams>=500 and(item = nut)") == [
        "grams", ">=", "500", "and", "(", "item", "=", "nut", ")",
    ]


def test_tokenize_quoted_text():
    assert tokenize('item = "wing nut"  ') == ["item", "=", "wing nut"]


def test_tokenize_rejects_other_signs():
    with pytest.raises(QueryError):
        tokenize("item ~ nut")


def test_empty_query_selects_all():
    assert grams("  ") == [300, 1_500, 90]


def test_numbers_compare_as_numbers():
    assert grams("grams > 200") == [300, 1_500]


def test_dates_compare_in_order():
    assert grams("day >= 2023-05-02") == [1_500, 90]


def test_and_binds_tighter_than_or():
    assert grams("place = shed or place = hall and item = nut") == [1_500, 90]


def test_parentheses_group():
    assert grams("(place = shed or place = hall) and item = nut") == [1_500]


def test_not():
    assert grams("not item = nut and place = hall") == [300]


def test_unknown_field():
    with pytest.raises(QueryError, match="unknown field"):
        grams("colour = red")


def test_query_that_ends_early():
    with pytest.raises(QueryError, match="too early"):
        grams("item =")


def test_text_after_the_query():
    with pytest.raises(QueryError, match="unexpected"):
        grams("item = nut place = hall")
