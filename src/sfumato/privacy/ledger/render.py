"""A ledger in words and tables: for terminals by rich, for notebooks as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape as escape_html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.privacy.accounting.guarantee import step_of
from sfumato.privacy.accounting.trust import model_name
from sfumato.privacy.accounting.units import Clock, period_of
from sfumato.privacy.ledger.accounts import REST
from sfumato.privacy.ledger.budget import at_most

if TYPE_CHECKING:
    from sfumato.privacy.ledger.release import Entry
    from sfumato.privacy.ledger.statement import LedgerStatement
    from sfumato.privacy.ledger.verify import LedgerCheck

PERIODS = 10  # how many are shown
COLUMNS = ("#", "time (UTC)", "mechanism", "cost", "note", "hash")


def render_statement(
    statement: LedgerStatement, name: str | Path, *, undelivered: Sequence[object] = ()
) -> Any:
    """A statement for a terminal.

    Args:
        statement: What the ledger says.
        name: What the ledger is called: its file.
        undelivered: What was paid for and nobody got, as `undelivered_runs` has it.

    Returns:
        A renderable of rich: two lines, and a table with a row for each entry.

    """
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    terms, money = _terms(statement), _money(statement)
    lines = [
        f"[bold]{escape(str(name))}[/bold]  {escape(terms)}",
        f"{money[0]}; [bold]{money[1]}[/bold]",
        *map(escape, _parts(statement)),
        *(escape(str(one)) for one in undelivered),
    ]
    if not statement.count:
        return Group(*lines, "no entries yet")
    if len(statement.entries) < statement.count:
        lines.append(f"the last {len(statement.entries)} of {statement.count} entries")
    table = Table(*COLUMNS)
    for entry in statement.entries:
        table.add_row(*map(escape, _row(entry)))
    return Group(*lines, table)


def statement_html(statement: LedgerStatement) -> str:
    """A statement for a notebook.

    Args:
        statement: What the ledger says.

    Returns:
        A paragraph and a table, as HTML.

    """
    lines = [_terms(statement), "; ".join(_money(statement)), *_parts(statement)]
    words = f"<p>{'<br>'.join(map(escape_html, lines))}</p>"
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape_html(cell)}</td>" for cell in _row(entry)) + "</tr>"
        for entry in statement.entries
    )
    return f"{words}<table><tr>{head}</tr>{rows}</table>"


def render_check(check: LedgerCheck) -> str:
    """One line for a ledger that was verified.

    Args:
        check: What `verify_ledger` found.

    Returns:
        The sentence.

    """
    paid = f", {check.receipts} release(s) paid for" if check.releases else ""
    return (
        f"{check.ledger}: chain of {check.entries} entries is whole{paid}, head {check.head[:16]}"
    )


def _terms(statement: LedgerStatement) -> str:
    header = statement.header
    told = statement.clock
    clock = "" if told is None else f" by {'the clock ' * isinstance(told, Clock)}{told}"
    step = step_of(header.neighbors, header.unit)
    return f"{header.source}, per {header.unit}{clock}, {step}, {model_name(header.model)}"


def _money(statement: LedgerStatement) -> tuple[str, str]:
    period = period_of(statement.header.unit)
    if period is None:
        spent = f"budget {statement.header.budget}; spent {statement.spent}"
        return spent, f"left {at_most(statement.left)}"
    spent = f"budget {statement.header.budget} in each {period}; {statement.spent} charged to all"
    return spent, f"left {at_most(statement.left)} in each {period} not charged yet"


def ledger_teams(statement: LedgerStatement) -> list[dict[str, str]]:
    """What each team has, has spent and has left, in words, and the same of what no team was given.

    Args:
        statement: Of a ledger.

    Returns:
        For each team its name, budget, what it spent, and what is left; none in a ledger without teams.
    """
    return [
        {
            "team": "no team" if team == REST else f"team {team}",
            "budget": str(budget),
            "spent": str(statement.accounts.of(team)),
            "left": at_most(statement.accounts.left(team)),
        }
        for team, budget in statement.accounts.budgets.items()
        if team
    ]


def _parts(statement: LedgerStatement) -> list[str]:
    """Lines for what was closed, for tables, teams, and the latest periods."""
    period, lines = period_of(statement.header.unit), []
    each = "" if period is None else f" in each {period}"
    if statement.format == 1:
        lines.append("a file of format 1: the next charge converts it")
    if (closed := statement.closed) is not None:
        went = f", it is {closed.successor} now" if closed.successor else ""
        why = f" ({closed.note})" if closed.note else ""
        lines.append(f"closed at {closed.time[:19]}{why}{went}: it pays for nothing")
    if statement.tables:
        lines.append(f"paid for {' and '.join(map(str, statement.tables))}")
    lines += [
        f"{one['team']}: budget {one['budget']}{each}; spent {one['spent']}; left {one['left']}"
        for one in ledger_teams(statement)
    ]
    latest = list(statement.periods.items())[-PERIODS:]
    for name, spent in latest:
        lines.append(f"{name}: spent {spent}; left {at_most(statement.left_of('', name))}")
    if len(statement.periods) > PERIODS:
        lines.append(f"and {len(statement.periods) - PERIODS} periods before, in the JSON")
    return lines


def _row(entry: Entry) -> tuple[str, ...]:
    return (
        str(entry.number),
        entry.time[:19],
        entry.mechanism,
        str(entry.cost) + (" (keyed)" if entry.computational is not None else ""),
        entry.note,
        entry.hash[:12],
    )
