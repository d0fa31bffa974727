import pytest

from stockroom.amounts import canonical_unit, convert, format_amount, parse_amount, split_evenly


def test_parse_grams():
    assert parse_amount("750 g") == 750


def test_parse_with_thousands_separator():
    assert parse_amount(" 1,250 kg ") == 1_250_000


def test_parse_fraction_without_space():
    assert parse_amount("2.5kg") == 2_500


def test_parse_tonnes():
    assert parse_amount("2 tonnes") == 2_000_000


def test_parse_rejects_a_bare_number():
    with pytest.raises(ValueError):
        parse_amount("12")


def test_unit_names_ignore_case():
    assert canonical_unit(" KG ") == "kg"
    assert canonical_unit("Tonnes") == "t"


def test_unknown_unit_is_an_error():
    with pytest.raises(ValueError):
        canonical_unit("stone")


def test_convert_keeps_the_fraction():
    assert convert(1_500, "kg") == 1.5


@pytest.mark.parametrize(
    "grams, text",
    [
        (999, "999 g"),
        (1_000, "1.00 kg"),
        (2_345_000, "2.35 t"),
        (-3_500_000, "-3.50 t"),
    ],
)
def test_format_amount(grams, text):
    assert format_amount(grams) == text


def test_split_evenly_gives_the_rest_to_the_first():
    assert split_evenly(11, 4) == [3, 3, 3, 2]


def test_split_evenly_needs_a_part():
    with pytest.raises(ValueError):
        split_evenly(5, 0)
