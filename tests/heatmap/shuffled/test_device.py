"""A device: its mass in units, noise in shares, messages of one size, and one answer a level."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.chance import assert_share
from tests.heatmap.shuffled.sessions import (
    ADDER,
    FAR,
    PLACE,
    SESSION,
    SHUFFLER,
    devices_of,
    small_plan,
)

from sfumato.errors import BudgetExceeded, InvalidInput, InvalidParameter
from sfumato.heatmap.shuffled import Device, Keys, Round, ShufflePlan, make_keys, read_plan
from sfumato.heatmap.shuffled.device import mass_of_places, parse_place, read_token
from sfumato.heatmap.shuffled.plan import TOKEN
from sfumato.heatmap.shuffled.rounds import added_up, mix, uniform_order
from sfumato.privacy import UNITS, Shuffled
from sfumato.privacy.noise import PolyaLaw, add_messages, centred, draw_shares, split_into_messages

PLAN = small_plan()
FOUR = Round(1, np.arange(4))


def opened(report: bytes, plan: ShufflePlan = PLAN) -> bytes:
    """What the shuffler reads of a report."""
    told = SHUFFLER.unseal(report, plan.digest + SESSION)
    assert told is not None
    return told


@pytest.mark.unit
def test_mass_is_in_whole_units() -> None:
    plan = replace(PLAN, units=64)
    codes, units = mass_of_places(plan, [PLACE, PLACE, FAR])
    assert (len(codes), units.tolist()) == (2, [43, 21])
    assert mass_of_places(plan, [(0.0, 0.0), FAR])[1].tolist() == [64]
    for nowhere in ([], [(0.0, 0.0)], [(float("nan"), 43.75)]):
        assert mass_of_places(plan, nowhere)[1].sum() == 0
    many = [(11.2 + i / 1000, 43.75) for i in range(100)]
    assert mass_of_places(plan, many)[1].sum() == 64


@pytest.mark.unit
def test_a_report_says_nothing_by_its_size() -> None:
    asked = FOUR.signed(PLAN, ADDER)
    sizes = {
        len(Device(PLAN, places).report(asked, SESSION)) for places in ([], [PLACE], [PLACE, FAR])
    }
    assert sizes == {PLAN.report_bytes(4)}
    assert PLAN.bytes_a_device == PLAN.report_bytes(4)


@pytest.mark.unit
def test_neither_hand_alone_reads_a_report() -> None:
    """The shuffler sees who and no message; the adder messages, and not who."""
    device = Device(PLAN, [PLACE])
    report = device.report(FOUR.signed(PLAN, ADDER), SESSION)
    assert ADDER.unseal(report, PLAN.digest + SESSION) is None
    told = opened(report)
    assert told[:TOKEN] == device.token
    messages, context = told[TOKEN + 1 :], FOUR.context(PLAN)
    first = messages[: PLAN.record]
    assert SHUFFLER.unseal(first, context) is None
    assert ADDER.unseal(first, context) is not None
    assert ADDER.unseal(first, context + b"another round") is None
    assert device.token not in messages


@pytest.mark.unit
def test_a_level_is_answered_once(tmp_path: Path) -> None:
    """Also by a device that was started again in between."""
    plan, memory = small_plan(levels=2), tmp_path / "answered.json"
    asked = Round(1, np.arange(4)).signed(plan, ADDER)
    device = Device(plan, [PLACE], memory=memory)
    device.report(asked, SESSION)
    for one in (device, Device(plan, [PLACE], memory=memory)):
        with pytest.raises(InvalidInput, match="level 1 was answered, and each is answered once"):
            one.report(asked, SESSION)
    Device(plan, [PLACE], memory=memory).report(Round(2, np.arange(5)).signed(plan, ADDER), SESSION)


@pytest.mark.unit
def test_a_device_has_a_budget_of_its_own(tmp_path: Path) -> None:
    """Over all plans in its memory; a level more of a plan costs nothing more, another plan does."""
    first, second = small_plan(levels=2), small_plan(levels=2, title="another")
    limits: dict[str, Any] = {"memory": tmp_path / "m.json", "most_epsilon": 7, "most_delta": 1}
    late = Device(second, [PLACE], **limits)
    for level in (1, 2):
        device = Device(first, [PLACE], **limits)
        device.report(Round(level, np.arange(4)).signed(first, ADDER), SESSION)
        assert device.spent == first.cost
    with pytest.raises(BudgetExceeded, match="`most_epsilon` is 7, with this plan it would be 8"):
        Device(second, [PLACE], **limits)
    with pytest.raises(BudgetExceeded, match="nothing was sent"):
        late.report(Round(1, np.arange(4)).signed(second, ADDER), SESSION)
    assert late.answered == 0
    with pytest.raises(BudgetExceeded, match="`most_delta`"):
        Device(second, [PLACE], **{**limits, "most_epsilon": 8, "most_delta": first.cost[1]})
    Device(second, [PLACE], **{**limits, "most_epsilon": 8})
    with pytest.raises(InvalidParameter, match="give `memory` too"):
        Device(second, [PLACE], most_epsilon=8)


@pytest.mark.unit
@pytest.mark.parametrize(
    "held",
    [
        "[]",
        "3",
        '{"a": 1}',
        '{"a": {"level": "1", "epsilon": "1", "delta": "0"}}',
        '{"a": {"level": 1, "epsilon": "-1", "delta": "0"}}',
    ],
)
def test_a_memory_that_is_none_is_said(held: str, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(held)
    with pytest.raises(InvalidInput, match="memory"):
        Device(PLAN, [PLACE], memory=tmp_path / "m.json")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("asked", "by", "because"),
    [
        (FOUR, SHUFFLER, "not signed by the adder"),
        (Round(2, np.arange(4)), ADDER, "no level 2"),
        (Round(1, np.array([0, 0, 1])), ADDER, "each once and in order"),
        (Round(1, np.array([3, 4])), ADDER, "1 to 4 cells of level 1"),
        (Round(1, np.array([-1])), ADDER, "1 to 4 cells"),
        (Round(1, np.array([], dtype=int)), ADDER, "this one for 0"),
    ],
)
def test_rounds_that_are_not_of_the_plan_are_not_answered(
    asked: Round, by: Keys, because: str
) -> None:
    device = Device(PLAN, [PLACE])
    with pytest.raises(InvalidInput, match=because):
        device.report(asked.signed(PLAN, by), SESSION)
    other = replace(PLAN, title="another")
    with pytest.raises(InvalidInput, match="not signed"):
        device.report(FOUR.signed(other, ADDER), SESSION)
    device.report(FOUR.signed(PLAN, ADDER), SESSION)


@pytest.mark.unit
@pytest.mark.parametrize(
    "changed",
    [
        {"scales": tuple(scale / 2 for scale in PLAN.scales)},
        {"messages": 2},
        {"messages": PLAN.messages - 2},
        {"bits": 40},
        {"trust": Shuffled(8, 20, 1)},
    ],
)
def test_a_device_takes_no_plan_that_costs_more_than_it_says(changed: dict[str, Any]) -> None:
    """Too few messages, too little noise, too few devices: it computes the loss itself."""
    told = {**PLAN.to_json()}
    with pytest.raises(InvalidParameter, match="costs no more than it says"):
        replace(PLAN, **changed)
    told["messages"] = 2
    with pytest.raises(InvalidInput, match="not a plan of a shuffled map: a plan costs no more"):
        ShufflePlan.from_json(told)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"scales": [str(Fraction(UNITS, 60)), str(Fraction(-UNITS, 59))]}, "scale of a plan"),
        ({"scales": ["0"]}, "scale of a plan"),
        ({"scales": ["1/1000"], "epsilon": "1e9"}, "epsilon of a plan"),
        ({"scales": ["1e-300"], "messages": 1}, "scale of a plan"),
        ({"scales": []}, "levels must lie in"),
        ({"epsilon": "0"}, "epsilon of a plan"),
        ({"epsilon": "-1"}, "epsilon of a plan"),
        ({"width": -1, "messages": 1}, "width of a plan"),
        ({"width": 0}, "width of a plan"),
        ({"width": 3}, "4..first_level of a plan"),
        ({"width": 2**200}, "width of a plan"),
        ({"delta": "2000", "messages": 1}, "delta of a plan"),
        ({"delta": "0"}, "delta of a plan"),
        ({"messages": 0}, "messages of a plan"),
        ({"messages": 10**9}, "messages of a plan"),
        ({"bits": 63}, "bits of a plan"),
        ({"bits": 0}, "bits of a plan"),
        ({"decay": float("nan")}, "decay of a plan"),
        ({"first_level": -1}, "levels must lie in"),
        ({"adder": str(SHUFFLER.public)}, "must be two"),
    ],
)
def test_a_forged_plan_is_taken_by_no_device(changed: dict[str, Any], rule: str) -> None:
    """Whatever sum its cost would have: every number is in its own range."""
    forged = {**small_plan(levels=2).to_json(), **changed}
    with pytest.raises(InvalidInput, match=rf"not a plan of a shuffled map: .*{rule}"):
        ShufflePlan.from_json(forged)


@pytest.mark.unit
def test_plans_read_as_they_are_written(tmp_path: Path) -> None:
    PLAN.write(tmp_path / "plan.json")
    again = read_plan(tmp_path / "plan.json")
    assert again == PLAN
    assert again.digest == PLAN.digest
    odds: list[Any] = [{}, {**PLAN.to_json(), "format": "2"}, {**PLAN.to_json(), "bits": 8.0}, []]
    for odd in odds:
        with pytest.raises(InvalidInput, match="not a plan"):
            ShufflePlan.from_json(odd)


@pytest.mark.unit
def test_keys_and_tokens_are_files(tmp_path: Path) -> None:
    public = make_keys(tmp_path / "adder.key")
    assert Keys.read(tmp_path / "adder.key").public == public
    assert (tmp_path / "adder.key").stat().st_mode & 0o077 == 0
    (tmp_path / "token").write_text("ab" * TOKEN)
    assert read_token(tmp_path / "token") == b"\xab" * TOKEN
    for read in (read_token, Keys.read):
        with pytest.raises(InvalidInput):
            read(tmp_path / "none")
    assert parse_place("11.2, 43.7") == (11.2, 43.7)
    with pytest.raises(InvalidParameter, match="two numbers") as refusal:
        parse_place("here")
    assert "here" not in str(refusal.value)


@pytest.mark.unit
def test_messages_are_added_up_and_spoilt_ones_counted() -> None:
    asked = FOUR.signed(PLAN, ADDER)
    reports = [opened(device.report(asked, SESSION))[TOKEN + 1 :] for device in devices_of(PLAN, 3)]
    reports.append(bytes(len(reports[0])))
    sums, spoilt = added_up(PLAN, FOUR, memoryview(mix(reports, PLAN.record)), ADDER)
    assert spoilt == 4 * PLAN.messages
    # Of 3 shares of shape 1/15 most are 0: the counts are 3 and 0, give or take little.
    counts = centred(sums, bits=PLAN.bits)
    assert np.abs(counts - [3, 0, 0, 0]).max() < 20


@pytest.mark.unit
def test_every_device_adds_its_own_noise() -> None:
    """Of forty shares of this shape and scale half are not 0; none of them says where anybody is."""
    plan = replace(PLAN, scales=(Fraction(50 * UNITS),))
    asked = FOUR.signed(plan, ADDER)
    noises = []
    for device in devices_of(plan, 10):
        told = memoryview(opened(device.report(asked, SESSION), plan)[TOKEN + 1 :])
        counts = centred(added_up(plan, FOUR, told, ADDER)[0], bits=plan.bits)
        noises.append((counts - [1, 0, 0, 0]).tolist())
    assert np.any(noises), "devices add no noise"
    assert len({tuple(one) for one in noises}) > 5, "devices share their noise"


@pytest.mark.statistical
def test_a_shuffler_keeps_no_order() -> None:
    """All orders of what three devices send are as likely; that of arrival is one of them."""
    from collections import Counter

    from scipy import stats

    reports = [bytes([one]) for one in range(3)]
    seen = Counter(bytes(mix(reports, 1)) for _ in range(3000))
    assert len(seen) == 6, "a shuffler keeps the order of arrival"
    assert stats.chisquare(list(seen.values())).pvalue > 1e-6
    assert sorted(uniform_order(1000).tolist()) == list(range(1000))


@pytest.mark.statistical
def test_one_cell_of_a_hundred_thousand_devices_has_its_law() -> None:
    """Shares of all devices, split, mixed and added up: few are not 0, and those have their law.

    80,000 of such shares are Laplace noise by their generating function: a share of another shape,
    or of another scale, is not.
    """
    trust, scale, bits = Shuffled(90_000, 100_000, 10_000), Fraction(640), 24
    which = np.zeros(trust.devices, dtype=np.int64)
    values = np.arange(trust.devices) % 2
    shares = [draw_shares(trust, [scale], which) for _ in range(8)]
    sent = split_into_messages(values + shares[0], 5, bits=bits).reshape(-1)
    mixed = sent[uniform_order(sent.size)]
    assert add_messages(mixed[:, None], bits=bits)[0] == values.sum() + shares[0].sum()
    law = PolyaLaw(scale, trust.share_shape)
    others = [PolyaLaw(scale, trust.share_shape * step) for step in (Fraction(1, 4), 4)]
    some, none = int(np.count_nonzero(shares)), float(law.pmf(0))
    assert_share(
        some, 8 * trust.devices, 1 - none, rivals=[1 - float(one.pmf(0)) for one in others]
    )
    small = [
        float((one.cdf(20) - one.cdf(-21) - one.pmf(0)) / (1 - one.pmf(0)))
        for one in (law, PolyaLaw(scale / 128, law.shape), PolyaLaw(scale * 2**20, law.shape))
    ]
    near = np.count_nonzero(np.abs(np.array(shares)) <= 20) - (8 * trust.devices - some)
    assert_share(int(near), some, small[0], rivals=small[1:])
