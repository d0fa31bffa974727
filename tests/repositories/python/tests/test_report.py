from datetime import date

from stockroom.ledger import Ledger, Movement
from stockroom.report import group_by_tag, heaviest, pages, shorten, stock_report, table

DAY = date(2023, 5, 1)


def make_ledger():
    book = Ledger()
    book.receive(DAY, "bolt", "hall", "3 Kilos")
    book.receive(DAY, "nut", "hall", "1,500 g")
    book.receive(DAY, "axle", "dock", "1.5 kg")
    book.transfer(DAY, "bolt", "hall", "dock", 400)
    return book


def test_table_fits_the_longest_cell():
    assert table(["id", "name"], [["1000", "bolt"], ["1", "nut"]]) == (
        "id    name\n----  ----\n1000  bolt\n1     nut"
    )


def test_pages_keep_the_rest():
    assert pages(["a", "b", "c", "d", "e"], 2) == [["a", "b"], ["c", "d"], ["e"]]


def test_shorten_keeps_a_text_that_fits():
    assert shorten("wing nuts", 9) == "wing nuts"


def test_shorten_marks_what_is_left_out():
    assert shorten("long wing nuts", 12) == "long wing..."


def test_group_by_tag():
    first = Movement(DAY, "bolt", "hall", 1, ("new", "steel"))
    second = Movement(DAY, "nut", "hall", 2)
    third = Movement(DAY, "nut", "hall", 3, ("steel",))
    assert group_by_tag([first, second, third]) == {
        "new": [first],
        "steel": [first, third],
        "untagged": [second],
    }


def test_group_by_tag_starts_afresh():
    group_by_tag([Movement(DAY, "bolt", "hall", 1, ("new",))])
    assert group_by_tag([]) == {}


def test_group_by_tag_fills_the_given_groups():
    groups = {}
    movement = Movement(DAY, "bolt", "hall", 1, ("new",))
    assert group_by_tag([movement], groups) is groups
    assert groups == {"new": [movement]}


def test_heaviest_items_first():
    assert heaviest(make_ledger(), 2) == [("bolt", 3_000), ("axle", 1_500)]


def test_stock_report():
    assert stock_report(make_ledger()).splitlines() == [
        "place  item  amount",
        "-----  ----  -------",
        "dock   axle  1.50 kg",
        "dock   bolt  400 g",
        "hall   bolt  2.60 kg",
        "hall   nut   1.50 kg",
    ]


def test_stock_report_of_a_query():
    report = stock_report(make_ledger(), "place = dock and item != axle")
    assert report.splitlines()[2:] == ["dock   bolt  400 g"]
