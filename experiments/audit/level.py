"""The auditor's own error rates, over many audits of mechanisms that keep their claim.

python -m experiments.audit.level --out FOLDER [--audits 2000] [--processes 2] [--minutes M] [--page
FILE]

The work is done in parts, each written down as it ends: a run that was stopped goes on where it
was. The page is written once all parts are there. In full it takes about twenty minutes on two idle
cores.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.audit.protocol import generator
from experiments.sensors.points import markdown

from sfumato.audit.catalogue import (
    BUDGET,
    CONFIDENCE,
    RUNS,
    TESTS,
    Level,
    SelfTest,
    Test,
    catch_all,
    errors,
    private_specimens,
)

PART = 50
HEAD = """# The auditor's own error rates

Eight mechanisms whose epsilon and whole profile are known on the pair, each audited {audits:,} times by each
of three tests at {confidence:.0%} confidence, so that at most {nominal:.0%} of the audits may be wrong:

- **fixed**: `lower_bound` with {fixed} runs is above the epsilon of the pair;
- **sequential**: `refute` with {sequential} runs refutes that epsilon;
- **band**: `profile` with {band} runs does not hold the true delta at all of five epsilons, up to that one.

Levels hold for any number of runs; few make many audits cheap. Made by
`python -m experiments.audit.level --page docs/reference/audit-level.md`; what specimens give out comes from
SHA-256 of what it is for, except for our own noise (OurLaplace), which comes from the operating system.
"""
CATCHES = """Mechanisms that do not keep their claim, the pair given, within {budget:,} runs:"""


@dataclass(frozen=True, slots=True)
class Part:
    """So many audits of one mechanism by one test, and how many of them were wrong."""

    mechanism: str
    test: Test
    number: int
    audits: int
    errors: int = 0

    @property
    def key(self) -> str:
        """What makes two parts the same work."""
        return f"{self.mechanism} {self.test} {self.number}: {self.audits} audits of {RUNS[self.test]} runs"


def main(argv: Sequence[str] | None = None) -> None:
    """Do what is missing, then write the page; fail where a rate is above nominal or nothing was caught."""
    parser = argparse.ArgumentParser(description="Error rates of the auditor itself", prog="level")
    parser.add_argument(
        "--out", type=Path, default=Path("demo/audit"), help="folder for what is done"
    )
    parser.add_argument("--audits", type=int, default=2000, help="of each mechanism by each test")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="stop after so long, to go on later"
    )
    parser.add_argument("--page", type=Path, help="the page of the docs to write")
    given = parser.parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    record = given.out / "level.jsonl"
    wanted = parts(given.audits)
    done = read_done(record)
    missing = [part for part in wanted if part.key not in done]
    print(f"{len(wanted) - len(missing)} of {len(wanted)} parts are there")
    work(missing, record, processes=given.processes, seconds=60 * given.minutes)
    done = read_done(record)
    left = [part for part in wanted if part.key not in done]
    if left:
        print(f"{len(left)} of {len(wanted)} parts are left; run it again")
        return
    found = SelfTest(tuple(levels(wanted, done)), tuple(catch_all(generator("level", "catches"))))
    print(found)
    if given.page is not None:
        given.page.write_text(page(found, given.audits), encoding="utf-8")
    if not found.passed:
        raise SystemExit(1)


def parts(audits: int) -> list[Part]:
    """All the work, one part of every row before the second of any, so that what is there is even."""
    names = [known.name for known in private_specimens(generator("level", "names"))]
    return [
        Part(name, test, number, min(PART, audits - number * PART))
        for number in range(-(-audits // PART))
        for name in names
        for test in TESTS
    ]


def run(part: Part) -> Part:
    """One part, done."""
    rng = generator("level", part.key)
    (known,) = [one for one in private_specimens(rng) if one.name == part.mechanism]
    wrong = errors(known, part.test, part.audits, rng)
    return Part(part.mechanism, part.test, part.number, part.audits, wrong)


def work(missing: Sequence[Part], record: Path, *, processes: int, seconds: float) -> None:
    """Do parts until all are done or time is up, each written down as it ends."""
    begin = time.monotonic()
    # Spawned, not forked: numba and the threads of others do not survive a fork.
    with (
        multiprocessing.get_context("spawn").Pool(processes) as pool,
        record.open("a", encoding="utf-8") as file,
    ):
        for count, part in enumerate(pool.imap_unordered(run, missing), 1):
            file.write(json.dumps({"key": part.key, "errors": part.errors}) + "\n")
            file.flush()
            spent = time.monotonic() - begin
            if count % len(TESTS) == 0:
                print(f"{count} of {len(missing)} parts, {spent:.0f} s", flush=True)
            if spent > seconds:
                pool.terminate()
                return


def read_done(record: Path) -> dict[str, int]:
    """The errors of every part that is written down."""
    if not record.exists():
        return {}
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    return {str(line["key"]): int(line["errors"]) for line in lines}


def levels(wanted: Iterable[Part], done: dict[str, int]) -> list[Level]:
    """One row for each mechanism and test."""
    rows: dict[tuple[str, Test], tuple[int, int]] = {}
    for part in wanted:
        audits, wrong = rows.get((part.mechanism, part.test), (0, 0))
        rows[part.mechanism, part.test] = (audits + part.audits, wrong + done[part.key])
    return [Level(test, name, audits, wrong) for (name, test), (audits, wrong) in rows.items()]


def page(found: SelfTest, audits: int) -> str:
    """The page of the docs."""
    runs: dict[str, float] = {str(test): count for test, count in RUNS.items()}
    words = {**runs, "audits": audits, "confidence": CONFIDENCE, "nominal": 1 - CONFIDENCE}
    total = sum(one.errors for one in found.levels)
    rows = [["mechanism", "caught", "runs"]]
    rows += [
        [one.mechanism, "yes" if one.caught else "**no**", f"{one.runs:,}"] for one in found.catches
    ]
    return "\n\n".join(
        [
            HEAD.format(**words).rstrip(),
            markdown(found.table()),
            f"In all {total:,} of {sum(one.audits for one in found.levels):,} audits were wrong.",
            CATCHES.format(budget=BUDGET),
            markdown(rows) + "\n",
        ]
    )


if __name__ == "__main__":
    main()
