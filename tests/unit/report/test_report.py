"""Tables from plain records: the test that marks cells, and every format to the byte."""

import csv
import io

import pytest
from scipy import stats

from lanczosnet.report import FORMATS, Comparison, Measurement, Table, render
from lanczosnet.report.formats import as_rows
from lanczosnet.report.table import duration


def record(row, column, values, *references, failed=0):
    names = ("name", "mean", "deviation", "runs")
    found = [dict(zip(names, reference, strict=True)) for reference in references]
    return {"row": row, "column": column, "values": values, "failed": failed, "references": found}


RECORDS = {
    "title": "Table 0: test accuracy in percent",
    "heads": ["data", "split"],
    "digits": 1,
    "higher_is_better": True,
    "cells": [
        record(
            ["Cora", "public"], "GCN", [80.0, 81.0, 82.0], ("published", 80.5, 0.8, 10), ("GRAND", 85.4, None, None)
        ),
        record(["Cora", "public"], "A_B", [], failed=3),
        record(["Cora", "1%"], "GCN", [70.0, 72.0], ("published", 60.1, 1.0, 10), failed=1),
        record(["Cora", "1%"], "A_B", [50.0], ("published", 60.0, 1.0, 10)),
    ],
    "notes": ["Recipe paper."],
    "runs": 10,
    "failed": 4,
    "seconds": 3725.0,
}

TEXT = """\
Table 0: test accuracy in percent

data  split                       GCN           A_B
-----------------------------------------------------
Cora  public               81.0 ± 1.0      3 failed
      published            80.5 ± 0.8 =
      GRAND                      85.4 -
Cora  1%         71.0 ± 1.4, 1 failed          50.0
      published            60.1 ± 1.0 +  60.0 ± 1.0

Recipe paper.
Mean and sample deviation (n - 1) over the seeds. Below ours stand the numbers that it is compared with: +
ours is better (higher), = within, - worse, by a two-sided t test at 5%, Welch's where a deviation was
published, else of our runs against the number.

published: of 3 cells 1 above (+), 1 within (=), 0 below (-); 2 reach the mean, 2 the mean less a deviation.
GRAND: of 1 cells 0 above (+), 0 within (=), 1 below (-); 0 reach the mean.
10 runs, of which 4 failed; 1 h 2 min of training in total.
"""

MARKDOWN = """\
**Table 0: test accuracy in percent**

| data | split | GCN | A_B |
| --- | --- | ---: | ---: |
| Cora | public | 81.0 ± 1.0 | 3 failed |
|  | published | 80.5 ± 0.8 = |  |
|  | GRAND | 85.4 - |  |
| Cora | 1% | 71.0 ± 1.4, 1 failed | 50.0 |
|  | published | 60.1 ± 1.0 + | 60.0 ± 1.0 |

- Recipe paper.
"""

LATEX = r"""\begin{table}
\centering
\begin{tabular}{llrr}
\hline
data & split & GCN & A\_B \\
\hline
Cora & public & 81.0 $\pm$ 1.0 & 3 failed \\
 & published & 80.5 $\pm$ 0.8 = &  \\
 & GRAND & 85.4 - &  \\
Cora & 1\% & 71.0 $\pm$ 1.4, 1 failed & 50.0 \\
 & published & 60.1 $\pm$ 1.0 + & 60.0 $\pm$ 1.0 \\
\hline
\end{tabular}
"""


@pytest.fixture
def table() -> Table:
    return Table.from_records(RECORDS)


def test_text_to_the_byte(table):
    assert render(table) == TEXT


def test_markdown_to_the_byte(table):
    assert render(table, "markdown").startswith(MARKDOWN)
    assert render(table, "markdown").endswith("\n- 10 runs, of which 4 failed; 1 h 2 min of training in total.\n")


def test_latex_to_the_byte(table):
    assert render(table, "latex").startswith(LATEX)
    assert r"t test at 5\%" in render(table, "latex")


def test_csv_has_a_row_for_each_comparison(table):
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert [row["compared_with"] for row in rows] == ["published", "GRAND", "", "published", "published"]
    assert rows[0] == {
        "data": "Cora",
        "split": "public",
        "column": "GCN",
        "mean": "81.0",
        "deviation": "1.0",
        "runs": "3",
        "failed": "0",
        "compared_with": "published",
        "their_mean": "80.5",
        "their_deviation": "0.8",
        "their_runs": "10",
        "p_value": rows[0]["p_value"],
        "mark": "=",
        "reaches_mean": "True",
        "reaches_mean_less_deviation": "True",
    }
    assert as_rows(table)[0]["mean"] == 81.0


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "conclusions"])
def test_equal_records_give_equal_bytes(table, form):
    assert render(table, form) == render(Table.from_records(RECORDS), form)


def test_a_wrong_format_lists_the_right_ones(table):
    with pytest.raises(ValueError, match="known are text, markdown, csv, latex"):
        render(table, "html")


def compared(values, mean, deviation=None, runs=None, higher_is_better=True) -> Comparison:
    return Comparison("published", mean, deviation, runs, Measurement(tuple(values)), higher_is_better)


def test_the_p_value_is_that_of_welch():
    ours = (80.1, 81.3, 79.8, 82.0, 80.7)
    expected = stats.ttest_ind_from_stats(
        Measurement(ours).mean, Measurement(ours).deviation, 5, 79.5, 1.8, 10, equal_var=False
    )
    assert compared(ours, 79.5, 1.8, 10).p_value == pytest.approx(expected.pvalue)


def test_without_a_published_deviation_the_p_value_is_that_of_our_runs_against_the_number():
    ours = (80.1, 81.3, 79.8, 82.0, 80.7)
    assert compared(ours, 79.5).p_value == pytest.approx(stats.ttest_1samp(ours, 79.5).pvalue)


@pytest.mark.parametrize(
    ("values", "higher", "mark"),
    [
        ((81.0, 81.1, 80.9), True, "+"),
        ((79.0, 79.1, 78.9), True, "-"),
        ((80.0, 80.2, 79.9), True, "="),
        ((81.0, 81.1, 80.9), False, "-"),
        ((79.0, 79.1, 78.9), False, "+"),
        ((80.0, 80.0), True, "="),
        ((80.1, 80.1), True, "+"),
        ((99.0,), True, ""),
    ],
)
def test_marks(values, higher, mark):
    assert compared(values, 80.0, higher_is_better=higher).mark == mark


def test_the_plain_comparisons():
    assert compared([80.0], 80.0, 1.0, 10).reaches_mean
    assert not compared([79.9], 80.0, 1.0, 10).reaches_mean
    assert compared([79.0], 80.0, 1.0, 10).reaches_deviation
    assert not compared([78.9], 80.0, 1.0, 10).reaches_deviation
    assert compared([81.0], 80.0, 1.0, 10, higher_is_better=False).reaches_deviation
    assert compared([0.1 + 0.2], 0.3).reaches_mean  # not by a rounding error below


def test_the_deviation_is_that_of_the_sample():
    assert Measurement((1.0, 2.0, 3.0)).deviation == 1.0
    assert Measurement((1.0,)).deviation is None
    assert Measurement(()).mean is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.25, "4.2 s"), (65, "1 min 5 s"), (3600, "1 h 0 min"), (90061, "25 h 1 min")]
)
def test_durations(seconds, text):
    assert duration(seconds) == text


def test_of_errors_a_deviation_more_is_what_is_reached():
    table = Table.from_records(RECORDS | {"higher_is_better": False})
    assert "the mean plus a deviation." in table.summary()[0]


def claimed(pairs, higher_is_better=False, looks=()):
    made = {"text": "long scales help", "better": "3", "worse": "2", "pairs": pairs, "published": [10.54, 10.6]}
    made["looks"] = list(looks)
    return Table.from_records(RECORDS | {"claims": [made], "higher_is_better": higher_is_better, "digits": 2})


def test_a_conclusion_is_tested_seed_by_seed():
    pairs = [[10.0, 10.5], [11.0, 11.6], [10.5, 11.2]]
    head, sentence = claimed(pairs).conclusions()
    test = stats.ttest_rel(*zip(*pairs, strict=True))
    low, high = (-bound for bound in reversed(test.confidence_interval(0.99)))
    assert head == "What the paper concludes, by a two-sided paired t test at 1% over the seeds:"
    assert sentence == (
        f"long scales help: holds. Row 3 has 10.50, row 2 11.10, a gain of +0.60 (99 % interval {low:+.2f} to "
        f"{high:+.2f}, 3 seeds, effect size 6.0, p = {test.pvalue:.2g}); published 10.54 and 10.60."
    )
    assert claimed(pairs, higher_is_better=True).claims[0].verdict == "the opposite holds"
    assert claimed([[10.0, 10.5], [11.0, 10.6]]).claims[0].verdict == "not decided"
    assert claimed([[10.0, 10.5]]).claims[0].verdict == "not decided"
    assert claimed([]).conclusions()[1] == "long scales help: not run."


def gains(*values):
    return [[10.0 - value, 10.0] for value in values]


def test_a_sequential_test_ends_at_the_first_look_that_decides():
    clear, unclear = (0.5, 0.6, 0.7), (0.5, -0.6, 0.1)
    (decided,) = claimed(gains(*clear, -9.0, -9.0), looks=[3, 5]).claims
    assert (decided.verdict, decided.num_seeds, decided.means) == ("holds", 3, pytest.approx((9.4, 10.0)))
    (later,) = claimed(gains(*unclear, 0.1, 0.1), looks=[3, 5]).claims
    assert (later.verdict, later.num_seeds) == ("not decided", 5)
    (between,) = claimed(gains(*unclear, 0.1), looks=[3, 5]).claims
    assert between.num_seeds == 3
    (early,) = claimed(gains(0.5, 0.50001), looks=[3, 5]).claims
    assert early.verdict == "not decided"  # a look comes first, however small the p value is


def test_conclusions_as_a_table():
    text = render(claimed(gains(0.5, 0.6, 0.7), looks=[3, 5]), "conclusions")
    assert "at 1%, after 3 and 5 seeds:" in text
    assert "| long scales help | 3, 2 | 10.54 / 10.60 | 9.40 / 10.00 | +0.60 | +0.03 to +1.17 | 6.0 | 3 |" in text
    assert text.endswith("1 of 1 comparisons is decided.\n")
    with pytest.raises(ValueError, match="no conclusions"):
        render(Table.from_records(RECORDS), "conclusions")


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_conclusions_stand_below_the_table(form):
    text = " ".join(render(claimed([[10.0, 10.5], [11.0, 11.6]]), form).split())
    assert ("0 of 1 comparisons are decided" if form == "markdown" else "long scales help: ") in text
    assert "long scales" not in render(Table.from_records(RECORDS), form)
