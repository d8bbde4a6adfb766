"""A small, seeded part of the campaign; `make campaign` runs all of it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.hostile_files import predictions_finite
from campaign.mutants import Mutant, alike, damaged_json, draws
from campaign.sandbox import Ran
from campaign.targets import TARGETS
from campaign.verdicts import CANARY, Observed, faults, same_or_said

TESTS = Path(__file__).resolve().parents[1]
HELD = [
    *(target.name for target in TARGETS),  # every class of files
    *("kill train nodes", "kill train --overwrite", "kill predict"),
]


def campaign(*arguments: str) -> subprocess.CompletedProcess[str]:
    places = [str(TESTS), str(TESTS.parent / "src")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "campaign", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=500)


@pytest.mark.slow
def test_a_part_of_the_campaign_is_held():
    result = campaign(
        "--seed", "1", "--count", "60", "--kills", "3", "--no-faults", *(f"--only={name}" for name in HELD)
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "  tried   held failed" in result.stdout


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [(1.5, 9849, True), (0.5, 2, True), (1.5, -2, False), (0.0, 2, False), (1.5, 10**400, False), (2, 1.5, False)],
)
def test_a_number_that_may_be_meant_is_no_damage(old, new, expected):
    assert alike(old, new) == expected


def observed(answer: str = "1", status: int = 0, err: str = "", peak: int = 0) -> Observed:
    return Observed(Ran(("predict",), status, answer, err, 1.0, peak), answer)


@pytest.mark.parametrize(
    ("kind", "bad"),
    [
        ("traceback", observed(status=1, err="Traceback (most recent call last)\nKeyError")),
        ("hang", observed(status=-signal.SIGALRM)),
        ("memory", observed(peak=3 << 30)),
        ("died", observed(status=-signal.SIGKILL)),
        ("silent", observed(answer="", status=1)),
        ("vague", observed(status=1, err="error: no")),
        ("wrong answer", observed(answer="2")),
    ],
)
def test_every_kind_of_failure_is_seen(kind, bad, tmp_path):
    found = faults(Mutant("changed", bytes), observed(), bad, tmp_path, same_or_said, ("config.json",))
    assert [name for name, _ in found if name != "vague" or kind == "vague"] == [kind]


def test_a_payload_that_ran_is_seen(tmp_path):
    (tmp_path / CANARY).touch()
    found = faults(Mutant("changed", bytes), observed(), observed(), tmp_path, same_or_said, ())
    assert [name for name, _ in found] == ["executed"]


def test_a_refusal_that_names_the_file_is_no_failure(tmp_path):
    bad = observed(status=1, err="error: config.json is damaged")
    assert faults(Mutant("changed", bytes), observed(), bad, tmp_path, same_or_said, ("config.json",)) == []


@pytest.mark.parametrize("bad", [observed(answer="2", err="warning: config.json is damaged"), observed()])
def test_a_notice_and_an_equal_answer_are_no_failures(bad, tmp_path):
    assert faults(Mutant("changed", bytes), observed(), bad, tmp_path, same_or_said, ()) == []


@pytest.mark.parametrize(
    ("row", "is_wrong"),
    [
        ("inf,0.5,", False),  # a cell of the table, which comes back as it is
        ("inf,,a feature is missing", False),
        ("0.1,inf,", True),
        ("0.1,-inf,", True),
        ("0.1,NaN,", True),
        ("0.1,,", True),
    ],
)
def test_predictions_are_numbers_or_have_an_error_whatever_stands_beside_them(row, is_wrong):
    good, bad = (observed(f"a,predicted_b,error\n0.3,0.4,\n{row}\n") for row in ("0.1,0.2,", row))
    assert bool(predictions_finite(Mutant("changed", bytes), good, bad)) == is_wrong


def test_mutants_are_the_same_for_the_same_seed():
    first, again, other = (
        [mutant.says for mutant in draws(damaged_json({"a": [1, 2], "b": "c"}), 20, seed)] for seed in (3, 3, 4)
    )
    assert first == again != other
