"""`python -m campaign`: attack the package, print tried / held / failed per class, end non-zero if anything failed."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path

from campaign import downloads, faults, hostile_files, kills, materials, sandbox
from campaign.pool import Broken, Case, Outcome, attacked
from campaign.targets import TARGETS
from campaign.verdicts import Failure

FILES, KILLS, MINUTES = 3000, 110, 30.0
REPORTED_ONLY = {"vague"}  # a message that does not name the file: shown, but no failure
MUST_NOT = {
    "hostile files": ("traceback", "hang", "memory", "executed", "wrong answer"),
    "kills": ("other result", "orphan", "stray", "traceback"),
    "faults": ("traceback", "hang", "other result", "stray"),
}


@dataclass
class Score:
    """What became of the attacks of one class."""

    tried: int = 0
    failed: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


def main(arguments: list[str] | None = None) -> int:
    options = _options().parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    begin = time.monotonic()
    sandbox.prepare()
    with tempfile.TemporaryDirectory(prefix="lanczosnet-campaign-") as folder:
        good = Path(folder) / "good"
        good.mkdir()
        materials.make(good)
        cases = list(_cases(options, good))
        until = begin + 60 * options.minutes
        kept = partial(_kept, options.keep / f"seed-{options.seed}")
        outcomes = attacked(iter(cases), Path(folder) / "work", options.jobs, until, kept)
        scores, failures, broken = _worked(outcomes, options.verbose)
    _print_failures(failures, broken)
    if broken or any(score.failed for score in scores.values()):
        print(f"\nwhat failed is kept in {options.keep / f'seed-{options.seed}'}, a folder for each attack")
    _print_scores(scores, time.monotonic() - begin)
    _print_kinds(scores)
    untried = len(cases) - sum(score.tried for score in scores.values())
    if untried:
        print(f"{untried} attacks were not tried: --minutes was too short")
    return int(bool(broken or untried or any(score.failed for score in scores.values())))


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of everything that is drawn")
    parser.add_argument(
        "--only", action="append", default=[], metavar="CLASS", help="classes whose name has this text; repeatable"
    )
    parser.add_argument("--count", type=int, default=FILES, help=f"hostile files in all, default {FILES}")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"kills in all, default {KILLS}")
    parser.add_argument(
        "--faults", action=argparse.BooleanOptionalAction, default=True, help="of disk, memory, folders and network"
    )
    parser.add_argument("--case", type=int, help="one attack of each class alone: its number")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no attack begins after so many")
    parser.add_argument("--jobs", type=int, default=2, help="attacks at once")
    parser.add_argument(
        "--keep", type=Path, default=Path("build/campaign"), metavar="FOLDER", help="where the files of failures go"
    )
    parser.add_argument("--verbose", action="store_true", help="print every failure when it happens")
    return parser


def _cases(options: argparse.Namespace, good: Path) -> Iterator[Case]:
    def wanted(name: str) -> bool:
        return not options.only or any(text in name for text in options.only)

    file_shares = sum(target.share for target in TARGETS)
    kill_shares = sum(scenario.share for scenario in kills.SCENARIOS)
    files = (
        hostile_files.cases(target, good, -(-options.count * target.share // file_shares), options.seed)
        for target in TARGETS
        if wanted(target.name) and options.count
    )
    killed = (
        kills.cases(scenario, good, -(-options.kills * scenario.share // kill_shares), options.seed)
        for scenario in kills.SCENARIOS
        if wanted(f"kill {scenario.name}") and options.kills
    )
    faulty = faults.cases(good, options.seed, wanted) if options.faults else iter(())
    served = downloads.cases(wanted) if options.faults else iter(())
    for case in chain.from_iterable((faulty, served, *killed, *files)):
        if options.case in (None, case.number):
            yield case


def _kept(folder: Path, case: Case, outcome: Outcome) -> Path | None:
    """Where the files of an attack go that must be looked at."""
    if not isinstance(outcome, Broken) and not {failure.kind for failure in outcome} - REPORTED_ONLY:
        return None
    place = folder / case.name
    shutil.rmtree(place, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return place


def _worked(
    outcomes: Iterator[tuple[Case, Outcome]], verbose: bool
) -> tuple[dict[str, Score], list[Failure], list[str]]:
    scores: dict[str, Score] = defaultdict(Score)
    failures: list[Failure] = []
    broken: list[str] = []
    for case, outcome in outcomes:
        score = scores[case.class_name]
        score.tried += 1
        if isinstance(outcome, Broken):
            broken.append(f"{case.class_name} {case.number}: {outcome.reason}")
            continue
        if verbose:
            for failure in outcome:
                print(failure, flush=True)
        kinds = {failure.kind for failure in outcome}
        score.kinds.update(kinds)
        score.failed += bool(kinds - REPORTED_ONLY)
        failures += outcome
    return scores, failures, broken


def _print_failures(failures: list[Failure], broken: list[str]) -> None:
    """One example of each kind of failure."""
    alike: dict[tuple[str, str, str], list[Failure]] = defaultdict(list)
    for failure in failures:
        alike[failure.signature].append(failure)
    for (kind, class_name, _), group in sorted(alike.items(), key=lambda item: (item[0][0] in REPORTED_ONLY, item[0])):
        first = group[0]
        print(f"\n{kind}: {class_name}, {len(group)} times, first --case {first.number}: {first.what}")
        print(f"    {first.command}\n    {first.shown}")
    for reason in broken:
        print(f"\nthe attack itself failed: {reason}")


def _print_scores(scores: dict[str, Score], seconds: float) -> None:
    width = max(map(len, scores), default=5)
    print(f"\n{'class':{width}}  tried   held failed  how")
    for name, score in scores.items():
        how = ", ".join(f"{kind} {count}" for kind, count in sorted(score.kinds.items()))
        print(f"{name:{width}} {score.tried:6} {score.tried - score.failed:6} {score.failed:6}  {how}")
    tried, failed = (sum(getattr(score, key) for score in scores.values()) for key in ("tried", "failed"))
    print(
        f"{'all':{width}} {tried:6} {tried - failed:6} {failed:6}  {seconds:.0f} s, {_processor():.0f} s of processors",
        flush=True,
    )


def _print_kinds(scores: dict[str, Score]) -> None:
    """What must not happen, and how often it did, over all classes of files, kills and faults."""
    families = {"hostile files": {target.name for target in TARGETS}}
    families["kills"] = {f"kill {scenario.name}" for scenario in kills.SCENARIOS}
    families["faults"] = scores.keys() - set.union(*families.values())
    for family, must_not in MUST_NOT.items():
        found = [score for name, score in scores.items() if name in families[family]]
        kinds = sum((score.kinds for score in found), Counter[str]())
        shown = ", ".join(f"{kind} {kinds[kind]}" for kind in dict.fromkeys((*must_not, *sorted(kinds))))
        if found:
            print(f"{family}: {sum(score.tried for score in found)} tried; {shown}", flush=True)


def _processor() -> float:
    """Seconds that this process and all that it waited for have computed."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    status = main()
    sys.stdout.flush()
    os._exit(status)  # without the complaints of libraries that are unloaded while frozen
