"""`sfumato audit run`: verdicts in words, files and exit codes, of functions, commands and samples."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from tests.cli.audit_runs import FEW, LOG3, MANY, PAIR, answer, ended, mechanisms, run

from sfumato.audit import estimates, pipeline
from sfumato.audit.boxes.box import FunctionBox, Pair
from sfumato.audit.boxes.given import shown
from sfumato.audit.boxes.samples import Encoder
from sfumato.audit.boxes.targets import rounded
from sfumato.audit.claims import EpsilonDelta
from sfumato.audit.codec import read_verdict
from sfumato.audit.estimates import Pace
from sfumato.audit.render.words import look_line, low_bits_lines, result_lines, witness_lines
from sfumato.audit.results import AuditResult
from sfumato.audit.sequential.bet import Look
from sfumato.audit.sequential.budget import MAX_RUNS, Budget
from sfumato.audit.verdict import Event, Verdict, Witness
from sfumato.cli.audit import live as audit_live
from sfumato.cli.audit.live import watching
from sfumato.cli.audit.options import Relation, claim_of
from sfumato.cli.console import in_flags
from sfumato.errors import InvalidParameter
from sfumato.privacy import (
    ZCDP,
    AddRemoveUser,
    ApproxDP,
    Claim,
    GaussianDP,
    PureDP,
    RandomApproxDP,
    RandomPureDP,
    ReplaceUser,
)

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    mechanisms(tmp_path, monkeypatch, rng)


# what is claimed, and how long it may take


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("epsilon=1", PureDP(1)), ("epsilon=0.1,delta=1e-6", ApproxDP("1/10", "1e-6")),
        ("delta=0, epsilon=1/3", ApproxDP("1/3", 0)), ("rho=0.5", ZCDP("1/2")), ("mu=1", GaussianDP(1)),
        ("epsilon=1,gamma=0.05", RandomPureDP(1, "0.05")),
        ("epsilon=1,delta=0.01,gamma=0.05", RandomApproxDP(1, "0.01", "0.05")),
    ],
)  # fmt: skip
def test_claims_are_exact(text: str, loss: Any) -> None:
    assert claim_of(text, Relation.added) == Claim(loss, AddRemoveUser())
    assert claim_of(text, Relation.replaced) == Claim(loss, ReplaceUser())


@pytest.mark.parametrize(
    "text", ["", "eps=1", "epsilon", "epsilon=", "epsilon=x", "delta=0.1", "epsilon=1,epsilon=2",
             "epsilon=-1", "epsilon=1,rho=1", "mu=1,gamma=0.1", "epsilon=1,delta=1"],
)  # fmt: skip
def test_other_claims_are_refused(text: str) -> None:
    with pytest.raises(InvalidParameter):
        claim_of(text, Relation.added)


def test_budgets() -> None:
    assert Budget.parse("60s") == Budget(MAX_RUNS, 60.0)
    assert Budget.parse("1.5m") == Budget(MAX_RUNS, 90.0)
    assert Budget.parse("2h,500") == Budget.parse("500, 2h") == Budget(500, 7200.0)
    assert Budget.parse("200000") == Budget(200_000, None)
    for text in ("", "60", "0", "0s", "-3", "1d", "5s,6s", "5,6", "s"):
        if text == "60":
            assert Budget.parse(text) == Budget(60, None)
            continue
        with pytest.raises(InvalidParameter, match="a budget is a time"):
            Budget.parse(text)


# verdicts


def test_a_leak_is_refuted_with_its_witness() -> None:
    told = ended(1, "run", "mech:response", "--claim", "epsilon=0.5", *PAIR, *FEW)
    lines = told.splitlines()
    assert lines[0] == (
        "REFUTED: mech:response does not keep what is claimed, epsilon 0.5 (one user added or removed)"
    )
    assert lines[1].startswith("witness, pair '0 and 1': the output is")
    assert re.search(r"allows the first at most e\^0\.5 x [\d,]+ of [\d,]+, that is", told)
    assert re.search(
        r"the same event on [\d,]+ fresh runs of either: [\d,]+ against [\d,]+, which", told
    )
    assert "over all pairs, directions and looks" in lines[-2]
    assert "chance at most 0.01" in lines[-2]
    assert re.fullmatch(r"[\d,]+ runs in all, with .*", lines[-1])


def test_what_is_not_refuted_is_not_called_private() -> None:
    told = ended(
        0, "run", "mech:response", "--claim", "epsilon=1.2", *PAIR, *FEW, "--confidence", "0.999999"
    )
    assert told.startswith("NOT REFUTED: mech:response, claimed to be epsilon 1.2")
    assert "this does not mean that the claim holds" in told
    assert "Verifying privacy is as hard as distinguishing" in told
    assert "would have been caught" in told


def test_too_few_runs_are_inconclusive() -> None:
    told = ended(5, "run", "mech:response", "--claim", "epsilon=1", *PAIR, "--budget", "6")
    assert told.startswith("INCONCLUSIVE: mech:response")
    assert re.search(r"[\d,]+ more runs are needed; give a larger --budget", told)


def test_json_is_all_that_is_printed_and_is_the_saved_verdict() -> None:
    found = answer(
        1, "run", "mech:response", "--claim", "epsilon=0.5", *PAIR, *FEW, "--out", "v.json"
    )
    saved = json.loads(Path("v.json").read_text())
    assert found["verdict"] == saved["verdict"] == "REFUTED"
    assert "test" not in found["witness"]["event"]
    assert "test" in saved["witness"]["event"]
    assert found["said"][0].startswith("REFUTED")
    assert found["confirmed"]["runs"] >= 1000
    assert {key: value for key, value in found.items() if key not in ("said", "witness")} == {
        key: value for key, value in saved.items() if key not in ("wealth", "witness")
    }
    assert read_verdict("v.json").verdict.kind == "REFUTED"


def test_forms_of_data_and_files_of_pairs() -> None:
    assert ended(1, "run", "mech:noisy", "--claim", "epsilon=1", "--inputs", "numbers", *FEW)
    Path("p.json").write_text('[[0, 0], {"name": "apart", "first": 0, "second": 1}]')
    told = ended(1, "run", "mech:noisy", "--claim", "epsilon=1", "--pairs", "p.json", *FEW)
    assert "witness, pair 'apart'" in told
    assert "2 pairs of inputs" in told


def test_samples_need_no_inputs(rng: np.random.Generator) -> None:
    for name, at in (("a.csv", 0.0), ("b.csv", 1.0)):
        Path(name).write_text(
            "\n".join(str(x) for x in (at + rng.laplace(scale=0.25, size=2000)).round(4))
        )
    words = ("--claim", "epsilon=1", "--confidence", "0.999999", "--bound", "--out", "v.json")
    told = ended(1, "run", "--samples", "a.csv", "b.csv", *words)
    assert "a.csv and b.csv" in told
    assert re.search(r"  on the (first|second) file: [\d,]+ of [\d,]+ runs", told)
    found = read_verdict("v.json").bound
    assert found is not None
    # Laplace noise of scale 1/4 has epsilon 4, and this bound is above it with chance at most 1e-6.
    assert 1.5 < found.epsilon <= 4
    assert found.runs == 4000
    refused = run("replay", "v.json", "--samples", "a.csv", "b.csv")
    assert (refused.exit_code, refused.stdout) == (4, "")
    assert "fresh runs are needed" in refused.stderr
    for name in ("a", "b"):
        Path(f"{name}.csv").rename(f"other-{name}.csv")
    again = answer(1, "replay", "v.json", "--samples", "other-a.csv", "other-b.csv")
    assert 1000 <= again["runs"] <= 2000


def test_a_command_is_a_black_box_too() -> None:
    told = ended(
        1,
        "run",
        "--command",
        "echo {data}",
        "--claim",
        "epsilon=1",
        *PAIR,
        "--budget",
        "2000",
        "--quiet",
    )
    assert told.startswith("REFUTED: echo {data} does not keep")


def test_the_current_folder_is_looked_in(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("only_here.py").write_text("def same(data, runs):\n    return [data] * runs\n")
    try:
        assert ended(1, "run", "only_here:same", "--claim", "epsilon=1", *PAIR, *FEW)
    finally:
        sys.modules.pop("only_here", None)


def test_a_bound_and_a_band_come_with_the_verdict() -> None:
    words = ("--claim", "epsilon=0.2", *PAIR, "--budget", "8000", "--confidence", "0.999999")
    found = answer(1, "run", "mech:response", *words, "--bound", "--band")
    # ln 3 = 1.0986 is the truth; each of these is wrong with chance at most 1e-6.
    assert 0.5 < found["bound"]["epsilon"] <= math.log(3)
    band = found["band"]
    true = [max(0.0, 0.75 - math.exp(epsilon) * 0.25) for epsilon in band["epsilons"]]
    assert all(
        low <= delta <= high
        for low, delta, high in zip(band["lower"], true, band["upper"], strict=True)
    )
    # There are but two outputs, so something is known from above: 0.38 is the truth at epsilon 0.4.
    assert band["upper"][-1] < 0.6


def low(*_: Any, **asked: Any) -> Verdict:
    """A refutation: 0 gave less than a half in 300 runs of 300, and 1 never did."""
    event = Event("the output is less than a half", lambda rows: rows[:, 0] < 0.5)
    seen = (
        Pair(0, 1, "0 and 1"),
        event,
        EpsilonDelta(1.0, 0.0),
        (300, 0),
        (300, 300),
        Encoder(1, words=False),
    )
    claim = Claim(PureDP(1), AddRemoveUser())
    return Verdict(
        "REFUTED", claim, 0.99, 600, 1.0, evidence=("e-value", 200.0), witness=Witness(*seen)
    )


def test_what_fresh_runs_do_not_show_is_not_refuted_by_the_command_either() -> None:
    told = ended(5, "run", "mech:drifting", "--claim", "epsilon=1", *PAIR, *FEW, "--bound")
    assert told.startswith("INCONCLUSIVE: mech:drifting")
    assert "NOT CONFIRMED: the bet was won as if runs were independent, but fresh runs" in told
    assert "depend on each other: those close in time are alike" in told
    assert "evidence" not in told
    assert "so few runs" not in told
    told = ended(1, "run", "mech:leak", "--claim", "epsilon=1", *PAIR, *FEW)
    assert (
        "1,024 against 0, which would allow 0.0 (p-value at most 0.00025, to be compared with 0.005)"
        in told
    )
    assert re.search(r"\d,\d{3} runs in all", told)


def test_an_output_that_never_changes_is_inconclusive() -> None:
    for name in ("nothing", "nan"):
        told = ended(5, "run", f"mech:{name}", "--claim", "epsilon=1", *PAIR, "--budget", "2000")
        assert told.startswith(f"INCONCLUSIVE: mech:{name}")
        assert "every run on every input gave the same output" in told
        assert "so few runs" not in told


def test_what_follows_a_bet_keeps_to_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 ms a run, and a second for two parts, half of each for computing: at most 12 runs, not 1,000."""
    clock = [0.0]
    monkeypatch.setattr(estimates, "time", mock.Mock(monotonic=lambda: clock[0]))

    def slow(data: Any) -> int:
        clock[0] += 0.02
        return 0

    after = Pace(FunctionBox(slow, "slow"), Budget(10**6, 1.0), 0.0)
    assert after.runs(Pair(0, 1), 10**6, parts=2) == 12
    clock[0] = 1.0
    assert after.runs(Pair(0, 1), 10**6, parts=1) == 0
    fast = Pace(FunctionBox(slow, "slow"), Budget(10**6, None), 0.0)
    assert fast.runs(Pair(0, 1), 400, parts=1) == 400


def test_a_certificate_that_takes_too_long_is_not_begun() -> None:
    words = (
        "--claim",
        "epsilon=1,delta=0",
        *PAIR,
        "--certify",
        "--outputs",
        "2",
        "--proximity",
        "0.0001",
    )
    told = ended(5, "run", "mech:slow", *words, "--budget", "1s")
    assert re.search(
        r"it takes [\d,]+ runs; at the speed of a few runs, 1 s are enough for [\d,]+; it was", told
    )


def test_a_wrong_specification_says_nothing_of_the_claim() -> None:
    words = (
        "run",
        "mech:slow",
        *PAIR,
        "--certify",
        "--proximity",
        "0.5",
        "--outputs",
        "[0, 1]",
        *MANY,
    )
    stated = ("--specification", "mech:law", "--confidence", "0.999999")
    told = ended(5, *words, "--claim", "epsilon=1.2", *stated)
    assert told.startswith("INCONCLUSIVE")
    assert "the stated laws are not those of the box" in told
    told = ended(5, *words, "--claim", "epsilon=0.5", *stated)
    assert "the stated laws themselves break the claim" in told
    assert ", 0 runs in" in told


def test_what_a_mechanism_prints_is_not_the_result() -> None:
    result = run("run", "mech:chatty", "--claim", "epsilon=1", *PAIR, "--budget", "400", "--json")
    assert json.loads(result.stdout)["verdict"] == "REFUTED"
    assert "a word of my own" in result.stderr


def test_a_verdict_is_not_lost_with_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sfumato.report.write_audit_report", full)
    words = ("run", "mech:leak", "--claim", "epsilon=1", *PAIR, *FEW, "--quiet")
    result = run(*words, "--report", "r.html", "--out", "v.json")
    assert result.exit_code == 4
    assert result.stdout.startswith("REFUTED")
    assert "No space left" in result.stderr
    assert read_verdict("v.json").verdict.kind == "REFUTED"
    Path("w.json").symlink_to("no/such/folder.json")
    result = run(*words, "--out", "w.json")
    assert (result.exit_code, result.stdout) == (8, "")
    assert "w.json exists already and is kept" in result.stderr
    os.mkfifo("x.json")
    result = run(*words, "--out", "x.json", "--overwrite")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "cannot write x.json: it is no ordinary file; nothing was run" in result.stderr


def test_who_interrupts_is_told_where_it_stood(monkeypatch: pytest.MonkeyPatch) -> None:
    def stub(*_: Any, watch: Any, **__: Any) -> Verdict:
        watch(Look(2222, 1.0, 1.5, 2.0, 100.0, "one up", "it is 3"))
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "refute", stub)
    result = run("run", "mech:slow", "--claim", "epsilon=1", *PAIR, "--quiet")
    assert (result.exit_code, result.stdout) == (130, "")
    said = "interrupted after 2,222 runs: wealth 1.5 of 100; not refuted so far"
    assert result.stderr == f"sfumato: {said}\n"


def test_who_interrupts_what_follows_keeps_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def stub(*_: Any, **__: Any) -> Verdict:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "refute", low)
    monkeypatch.setattr(pipeline, "worst_pair", stub)
    told = ended(1, "run", "mech:leak", "--claim", "epsilon=1", *PAIR, *FEW, "--out", "w.json")
    assert told.startswith("REFUTED: mech:leak")
    assert "interrupted after the bet: what follows it was not run to its end" in told
    assert read_verdict(Path("w.json")).verdict.kind == "REFUTED"


def test_rounding_looks_past_low_bits() -> None:
    words = (
        "run",
        "mech:lowbits",
        "--claim",
        "epsilon=1",
        *PAIR,
        "--budget",
        "4000",
        "--out",
        "v.json",
    )
    told = ended(1, *words, "--confidence", "0.999999")
    assert "--round" not in told.splitlines()[-1]
    told = ended(0, *words, "--overwrite", "--round", "20", "--confidence", "0.999999")
    assert told.startswith("NOT REFUTED: mech:lowbits, rounded to multiples of 2**-20, claimed")
    told = ended(
        1,
        "run",
        "mech:leak",
        "--claim",
        "epsilon=1",
        *PAIR,
        *FEW,
        "--round",
        "0",
        "--out",
        "w.json",
    )
    assert (
        told.splitlines()[-1]
        == "again, on fresh runs: sfumato audit replay w.json mech:leak --round 0"
    )
    assert (
        run("replay", "w.json", "mech:leak", "--round", "0").stderr.count("the verdict is of") == 0
    )
    assert rounded(np.array([0.3, np.inf, -1.26]), 2).tolist() == [0.25, np.inf, -1.25]
    assert rounded([1, "a", (0.3, True), math.inf], 2) == [1, "a", (0.25, True), math.inf]


def test_a_witness_of_low_bits_says_what_it_is() -> None:
    found = witness((57, 12), (10_000, 10_000))
    assert not low_bits_lines(found)
    event = Event("the output is an odd multiple of 2**-52", found.event.contains)
    (line,) = low_bits_lines(replace(found, event=event))
    assert "[mironov12]" in line
    assert "docs/explain/noise.md" in line
    assert "; `round_bits` looks past it" in line
    assert "; --round BITS looks past it" in in_flags(line, {"--round"})


# words


def witness(hits: tuple[int, int], runs: tuple[int, int], delta: float = 0.0) -> Witness:
    event = Event("the output is at least 3", lambda rows: rows[:, 0] >= 3)
    return Witness(
        Pair(0, 1, "0 and 1"), event, EpsilonDelta(1.0, delta), hits, runs, Encoder(1, words=False)
    )


def test_the_meaning_of_a_witness_is_spelled_out() -> None:
    lines = witness_lines(witness((57, 12), (10_000, 10_000)))
    assert lines == [
        "witness, pair '0 and 1': the output is at least 3",
        "  on 0: 57 of 10,000 runs",
        "  on 1: 12 of 10,000 runs",
        "  the claim allows the first at most e^1 x 12 of 10,000, that is 32.6 of 10,000; 57 were seen",
    ]
    (*_, last) = witness_lines(witness((570, 12), (20_000, 10_000), delta=0.01))
    # 20,000 (e 0.0012 + 0.01) = 265.2
    assert "e^1 x 0.0012 and 0.01 more of all runs, that is 265.2 of 20,000; 570 were seen" in last


def test_inputs_are_shown_by_what_tells_them_apart() -> None:
    assert shown([0, 1]) == "[0, 1]"
    assert shown(np.zeros(3)) == "[0.0, 0.0, 0.0]"
    assert shown([0.0] * 40 + [1.0]) == "[40 x 0.0, 1.0]"
    assert shown(np.repeat([1.5, 2.5, 0.0], [20, 1, 20])) == "[20 x 1.5, 2.5, 20 x 0.0]"
    assert len(shown(list(range(100)))) <= 60
    assert len(shown("x" * 100)) <= 60


def test_a_look_fits_on_a_line() -> None:
    look = Look(12_400, 3.2, 7.123, 9.4, 100.0, "one up", "the output is at least 3" + "x" * 100)
    said = look_line(look)
    assert said.startswith(
        "12,400 runs  3 s  wealth 7.12 of 100 (most 9.4)  one up: the output is at least 3"
    )
    assert "\n" not in said
    assert len(said) < 140


def test_a_live_line_lives_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    look = Look(2222, 0.0, 1.0, 1.0, 100.0, "one up", "it is 3")
    begun = "betting against the claim about mech:slow"
    for screen, quiet, every, said in (
        (io.StringIO(), False, 5.0, f"{begun}\n"),
        (io.StringIO(), False, 0.0, f"{begun}\n{look_line(look)}\n"),
        (io.StringIO(), True, 0.0, ""),
        (Terminal(), True, 0.0, ""),
    ):
        monkeypatch.setattr(audit_live, "EVERY", every)
        with mock.patch.object(sys, "stderr", screen), watching(quiet=quiet) as watch:
            watch(begun)
            watch(look)
        assert screen.getvalue() == said
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", "200")
    with mock.patch.object(sys, "stderr", screen), watching(quiet=False) as watch:
        watch(begun)
        watch(look)
    assert "2,222 runs  0 s  wealth 1 of 100 (most 1)  one up: it is 3" in screen.getvalue()


@pytest.mark.parametrize(
    ("kind", "code"), [("REFUTED", 1), ("NOT_REFUTED", 0), ("CERTIFIED", 0), ("INCONCLUSIVE", 5)]
)
def test_every_kind_has_its_exit_code_and_first_word(
    kind: Any, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Verdict(kind, Claim(PureDP(1), AddRemoveUser()), 0.99, 100, 1.0, proximity=0.1)
    monkeypatch.setattr(pipeline, "refute", lambda *args, **asked: found)
    said = ended(code, "run", "mech:slow", "--claim", "epsilon=1", *PAIR)
    assert said.startswith(kind.replace("_", " "))
    assert result_lines(AuditResult(found, "mech:slow"))[0] == said.splitlines()[0]


# the report


def test_the_report_is_whole_and_fetches_nothing() -> None:
    asked = ("--claim", "epsilon=0.2", *PAIR, "--budget", "3000", "--report", "r.html", "--quiet")
    ended(1, "run", "mech:response", *asked)
    page = Path("r.html").read_text()
    for words in ("epsilon 0.2", "REFUTED", "mech:response", "3000", "0 and 1", "Verifying privacy is as",
                  " UTC", "Witness", "Wealth", "Band of delta", "numpy", "sfumato audit replay"):  # fmt: skip
        assert words in page, words
    sources = re.findall(r'(?i)\b(?:src|href|srcset|action|poster)\s*=\s*"?([^"\s>]*)', page)
    assert len(sources) == 3
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert not re.search(
        r"(?i)\b(https?|ftp|file|javascript):|url\(|@import|<(script|link|iframe)\b", page
    )


def test_a_report_of_what_was_not_refuted_says_what_that_does_not_mean() -> None:
    words = ("--claim", f"epsilon={LOG3}", *PAIR, "--budget", "2000", "--confidence", "0.999999")
    ended(0, "run", "mech:response", *words, "--report", "r.html", "--no-band")
    page = Path("r.html").read_text()
    assert "This does not mean that the claim holds" in page
    assert "Witness" not in page
    assert page.count("data:image/png") == 1


def test_the_report_trusts_no_name() -> None:
    words = ("--claim", "epsilon=1", *PAIR, "--budget", "1000", "--report", "r.html")
    ended(1, "run", "--command", "echo '<script>'{data}", *words)
    page = Path("r.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
