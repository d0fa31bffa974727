from datetime import date

import pytest

from stockroom.periods import Period, add_months, gaps, merge, working_days


def may(first, last):
    return Period(date(2023, 5, first), date(2023, 5, last))


def test_days_counts_both_ends():
    assert may(1, 7).days == 7
    assert may(3, 3).days == 1


def test_period_cannot_end_before_it_starts():
    with pytest.raises(ValueError):
        may(5, 4)


def test_contains_both_ends():
    assert date(2023, 5, 1) in may(1, 7)
    assert date(2023, 5, 7) in may(1, 7)
    assert date(2023, 5, 8) not in may(1, 7)


def test_periods_that_share_one_day_overlap():
    assert may(1, 5).overlaps(may(5, 9))
    assert may(5, 9).overlaps(may(1, 5))
    assert not may(1, 4).overlaps(may(5, 9))


@pytest.mark.parametrize(
    "start, months, result",
    [
        (date(2023, 1, 15), 1, date(2023, 2, 15)),
        (date(2023, 1, 31), 1, date(2023, 2, 28)),
        (date(2023, 11, 30), 3, date(2024, 2, 29)),
        (date(2023, 3, 31), -4, date(2022, 11, 30)),
    ],
)
def test_add_months(start, months, result):
    assert add_months(start, months) == result


def test_merge_joins_overlapping_periods():
    assert merge([may(4, 9), may(1, 5)]) == [may(1, 9)]


def test_merge_joins_adjacent_periods():
    assert merge([may(1, 3), may(4, 6), may(8, 9)]) == [may(1, 6), may(8, 9)]


def test_merge_keeps_the_longer_period():
    assert merge([may(1, 20), may(5, 8)]) == [may(1, 20)]


def test_gaps_between_bookings():
    assert gaps([may(3, 5), may(10, 12)], may(1, 15)) == [may(1, 2), may(6, 9), may(13, 15)]


def test_gaps_ignore_bookings_outside():
    assert gaps([may(1, 3), may(20, 25)], may(5, 10)) == [may(5, 10)]


def test_no_gaps_when_all_is_booked():
    assert gaps([may(1, 31)], may(5, 10)) == []


def test_working_days_leave_out_the_weekend():
    assert working_days(may(1, 7)) == 5


def test_working_days_leave_out_holidays():
    assert working_days(may(1, 14), [date(2023, 5, 1), date(2023, 5, 6)]) == 9
