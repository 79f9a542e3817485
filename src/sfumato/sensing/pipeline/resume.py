"""Finish readings and answers that were paid for and not delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from sfumato.errors import InvalidInput
from sfumato.files import check_outputs
from sfumato.privacy import Ledger
from sfumato.privacy.runs import KeptRun, ResumeResult, Run, kept_runs, ledger_files, resume_runs
from sfumato.sensing.pipeline.payer import check_moments, payer_of, schedule_of
from sfumato.sensing.pipeline.release import (
    Watch,
    carried_out,
    part_of,
    planned_noise,
)
from sfumato.sensing.pipeline.requests import READINGS, ReadingsRequest, digest_of
from sfumato.sensing.pipeline.snapshots import ReadingsGiven, checked_snapshots
from sfumato.sensing.pipeline.whisper.release import WHISPER, finish_whisper
from sfumato.sensing.release.keys import Device
from sfumato.sensing.release.noise_plan import NoisePlan
from sfumato.sensing.results.release import ReleaseResult
from sfumato.sensing.whisper.answers import WhisperAnswers


def resume_readings(
    ledger: Ledger | str | Path,
    *,
    entry: int | None = None,
    readings: ReadingsGiven | None = None,
    device: Device | str | Path | None = None,
    out: Sequence[str | Path] | None = None,
    paid_only: bool = False,
    list_only: bool = False,
    watch: Watch | None = None,
) -> ResumeResult[ReleaseResult | WhisperAnswers]:
    """Finish releases of readings, and of answers, that were paid for and stopped.

    What was drawn is found beside the ledgers, with its seal; what was paid for and not drawn is
    drawn now, at no further cost. Readings of the same table that were not paid for yet are charged, as was
    asked, unless `paid_only`. Files that are there already and are the same are left.

    Args:
        ledger: The ledger that paid, or its file; or the folder of ledgers of windows.
        entry: Finish the request of this entry only; all, if none is given.
        readings: The exact readings, where they were a table in memory, or have moved.
        device: The device, where its key file has moved.
        out: Other files than were asked for.
        paid_only: Whether to deliver what was drawn and leave the rest, which is then not released.
        list_only: Whether to say what there is to finish, and do nothing.
        watch: Is told what is being done.

    Returns:
        What was finished, and what was left: requests of other commands, and those in progress.

    Raises:
        InvalidInput: Readings or the site cannot be read, or a file not written; what is paid for stays.
        InvalidParameter: There is no such entry to finish, or `out` is for several requests.
    """

    def finish(kept: KeptRun) -> ReleaseResult | WhisperAnswers:
        if watch is not None:
            watch(f"finishing {kept}")
        if kept.kind == WHISPER:
            return finish_whisper(kept, answers=cast(Any, readings), out=out)
        asked = ReadingsRequest.from_json(kept.asked, kept.delivery)
        if out is not None:
            asked = replace(asked, outputs=tuple(map(Path, out)))
        check_outputs(asked.outputs, {".json", ".csv"}, overwrite=True)
        paid = [
            Ledger(kept.parts[part_of(number)][0]) if part_of(number) in kept.parts else None
            for number in range(asked.count)
        ]
        first = next(one for one in paid if one is not None)
        by_time = asked.windows is not None
        budget, payer = payer_of(asked.site, None if by_time else first, asked.windows)
        planned = planned_noise(
            asked.site, budget, asked.loss, asked.share, asked.calibration, asked.noise_plan, watch
        )
        checked: list[Any] = []

        def reading(number: int) -> Any:
            if not checked:
                given = asked.readings if readings is None else readings
                if given is None:
                    raise InvalidInput(
                        "its readings were a table in memory: give them as `readings`, or say `paid_only`"
                    )
                checked.extend(_read_again(given, asked, planned))
            return checked[number]

        return carried_out(
            asked,
            Run(asked.request, kept=kept),
            planned,
            paid,
            reading=reading,
            payer=payer,
            device=asked.device if device is None else device,
            paid_only=paid_only,
        )

    return resume_runs(
        ledger.path if isinstance(ledger, Ledger) else ledger,
        partial(_books, ledger),
        kinds=(READINGS, WHISPER),
        finish=finish,
        entry=entry,
        one_only="other files" if out is not None else "",
        list_only=list_only,
    )


def _read_again(
    given: ReadingsGiven, asked: ReadingsRequest, planned: NoisePlan
) -> Sequence[tuple[str, Mapping[str, float]]]:
    """The readings of a request: as many, of the same times, which are in its schedule of windows."""
    found = checked_snapshots(
        given,
        asked.site,
        planned,
        some=asked.some,
        form=asked.form,
        schedule=schedule_of(asked.windows),
    )
    if len(found) != asked.count:
        raise InvalidInput(
            f"there were {asked.count} readings when they were asked for, there are {len(found)} now; "
            "say `paid_only` to have those that were drawn"
        )
    times = [time for time, _ in found]
    if asked.times and digest_of(times) != asked.times:
        # A time chooses the window that pays; what was asked for has chosen.
        raise InvalidInput(
            "the readings have other times than when they were asked for; say `paid_only` to have those that "
            "were drawn"
        )
    if asked.windows is not None:
        check_moments(asked.windows, times, asked.form.round_time)
    return found


def _books(ledger: Ledger | str | Path) -> list[Ledger]:
    """The ledger; with those of other windows that a request of it has paid by."""
    first = (
        [ledger] if isinstance(ledger, Ledger) else [Ledger(file) for file in ledger_files(ledger)]
    )
    known = {one.path.resolve(): one for one in first}
    for run in kept_runs(first):
        windows = run.asked.get("windows")
        for file in ledger_files(windows["folder"]) if windows else ():
            known.setdefault(file.resolve(), Ledger(file))
    return list(known.values())
