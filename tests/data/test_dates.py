"""Tests of dates that are written as text."""

import datetime

import numpy as np
import pandas as pd
import pytest

from corral.data.dates import parse_dates, read_dates

DAY = np.datetime64("2007-11-05T00:00:00")


@pytest.mark.parametrize(
    ("text", "other", "order", "ambiguous"),
    [
        ("2007-11-05", "2008-01-31", "year month day", False),
        ("2007/11/5", "2008/1/31", "year month day", False),
        ("2007-11-05 00:00:00", "2003-12-31 22:16:41", "year month day", False),
        ("2007-11-05T00:00:00Z", "2003-12-31T22:16:41.25+01:00", "year month day", False),
        ("11/05/2007", "01/31/2008", "month day year", False),
        ("05/11/2007", "31/01/2008", "day month year", False),
        ("11/05/2007", "05/01/2020", "month day year", True),
        ("05.11.2007", "06.01.2020", "day month year", True),
        ("05.11.07", "31.12.99", "day month year", False),
        ("11/5/2007 12:00 AM", "5/1/2020 3:45 PM", "month day year", True),
        ("5 Nov 2007", "6 January 2020", "day month year", False),
        ("05-NOV-07", "6-jan-20", "day month year", False),
        ("Nov 5, 2007", "January 6 2020", "month day year", False),
        (datetime.date(2007, 11, 5), datetime.date(2008, 1, 6), "year month day", False),
        (pd.Timestamp("2007-11-05"), pd.NaT, "year month day", False),
    ],
)
def test_dates_are_read(text, other, order, ambiguous):
    dates = parse_dates([None, text, other, float("nan"), text, ""])
    assert (dates.form.order, dates.form.ambiguous) == (order, ambiguous)
    assert dates.times.dtype == "datetime64[s]"
    assert dates.times[1] == dates.times[4] == DAY
    assert np.isnat(dates.times).tolist() == [True, False, other is pd.NaT, True, False, True]
    assert not dates.unreadable.any()
    again = read_dates([text, "soon", None], dates.form)
    assert again.times[0] == DAY
    assert again.unreadable.tolist() == [False, True, False]


def test_times_are_read():
    texts = ["2003-12-31 22:16:41", "2003-12-31 22:16"]
    times = parse_dates(texts).times
    assert times.astype(str).tolist() == ["2003-12-31T22:16:41", "2003-12-31T22:16:00"]
    assert parse_dates(["5/1/2020 3:45 PM"]).times.astype(str).tolist() == ["2020-05-01T15:45:00"]


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [None, ""],
        ["red", "green"],
        ["1.5", "2.25"],
        [1.5, 20071105.0],
        ["2007-08", "2008-09"],
        ["2007-13-01"],
        ["2007-11-31"],
        ["31/12/2007", "12/31/2007"],
        ["2007-11-05", "11/05/2007"],
        ["12-34-5678"],
        ["1.2.3"],
        ["2007-11-05", "unknown"],
        ["10:20", "22:16:41"],
        ["2007-11-05 25:00"],
    ],
)
def test_what_is_no_column_of_dates(texts):
    assert parse_dates(texts) is None


def test_one_text_in_twenty_may_be_no_date():
    days = [f"2007-11-{day:02}" for day in range(1, 20)]
    dates = parse_dates([*days, "soon"])
    assert np.flatnonzero(dates.unreadable).tolist() == [19]
    assert parse_dates([*days[1:], "soon"]) is None


def test_a_form_that_is_known_reads_ambiguous_dates_the_same_way():
    form = parse_dates(["31/12/2007", "05/11/2007"]).form
    assert read_dates(["05/11/2007"], form).times[0] == DAY
    assert read_dates(["12/31/2007"], form).unreadable.tolist() == [True]
