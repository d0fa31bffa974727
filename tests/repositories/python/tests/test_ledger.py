from datetime import date

import pytest

from stockroom.ledger import InsufficientStock, Ledger, Movement

MONDAY = date(2023, 5, 1)
TUESDAY = date(2023, 5, 2)
FRIDAY = date(2023, 5, 5)


@pytest.fixture
def ledger():
    book = Ledger()
    book.receive(MONDAY, "bolt", "hall", "3 kg")
    book.receive(TUESDAY, "nut", "hall", "500 g")
    book.transfer(FRIDAY, "bolt", "hall", "shed", 1_000)
    return book


def test_balance_at_a_place(ledger):
    assert ledger.balance("bolt", "hall") == 2_000
    assert ledger.balance("bolt", "shed") == 1_000


def test_balance_of_all_places(ledger):
    assert ledger.balance("bolt") == 3_000


def test_balance_of_an_unknown_item(ledger):
    assert ledger.balance("gear") == 0


def test_cannot_take_more_than_there_is(ledger):
    with pytest.raises(InsufficientStock):
        ledger.transfer(FRIDAY, "nut", "hall", "shed", 501)
    assert ledger.balance("nut", "hall") == 500


def test_taking_everything_leaves_nothing(ledger):
    ledger.transfer(FRIDAY, "nut", "hall", "shed", 500)
    assert ledger.balance("nut", "hall") == 0
    assert ledger.by_place() == {"hall": {"bolt": 2_000}, "shed": {"bolt": 1_000, "nut": 500}}


def test_transfer_must_be_positive(ledger):
    with pytest.raises(ValueError):
        ledger.transfer(FRIDAY, "bolt", "hall", "shed", 0)


def test_balance_on_a_day_includes_that_day(ledger):
    ledger.record(Movement(FRIDAY, "nut", "hall", 250))
    assert ledger.balance_on("nut", MONDAY) == 0
    assert ledger.balance_on("nut", TUESDAY) == 500
    assert ledger.balance_on("nut", FRIDAY) == 750


def test_lowest_balance():
    book = Ledger(
        Movement(MONDAY, item, "hall", grams)
        for item, grams in [("bolt", 900), ("nut", 50), ("bolt", -700), ("bolt", 400)]
    )
    assert book.lowest_balance("bolt") == 200
    assert book.lowest_balance("gear") == 0


def test_copy_is_independent(ledger):
    other = ledger.copy()
    other.receive(FRIDAY, "bolt", "hall", "1 kg")
    assert ledger.balance("bolt", "hall") == 2_000
    assert len(ledger) == 4
    assert len(other) == 5
