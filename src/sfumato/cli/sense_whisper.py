"""`sfumato sense whisper`: who heard it, told through noise, and in which community it began."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli.chance import chance
from sfumato.cli.console import Json, Quiet, say, sentences, show, working
from sfumato.cli.sense_files import column, read_graph, read_layout, read_rows
from sfumato.cli.sense_outputs import check_outputs, keep_paid
from sfumato.cli.sense_told import percent
from sfumato.errors import InvalidInput, InvalidParameter, LedgerMismatch
from sfumato.files import write_file, write_table

if TYPE_CHECKING:
    from sfumato._types import IntArray
    from sfumato.privacy import Ledger
    from sfumato.sensing import Spread, WhisperPosterior
    from sfumato.sensing.whisper import WhisperAnswers
    from sfumato.spaces import Graph

WORDS = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0}
TOLD = 8  # nodes that are named
SAFER = (
    "nodes count as independent given the start; where it ran along edges they are not, and both the "
    "community and the set of nodes are less sure than said"
)

app = typer.Typer(
    help="Whisper networks: who heard it, told through noise; in which community did it begin?",
    no_args_is_help=True,
)
GraphFile = Annotated[
    Path, typer.Option(help="Who talks to whom, public: edge list u, v.", show_default=False)
]
LargestPart = Annotated[
    bool, typer.Option("--largest-part", help="Keep the largest connected part of the graph.")
]


@app.command()
@sentences
def release(
    answers: Annotated[
        Path,
        typer.Argument(
            help="Exact answers: a table with node, heard (yes or no).", show_default=False
        ),
    ],
    graph: GraphFile,
    ledger: Annotated[
        Path,
        typer.Option(
            help="The ledger that pays: `ledger create --unit node --neighbors replace`.",
            show_default=False,
        ),
    ],
    epsilon: Annotated[
        str, typer.Option(help="What one answer of each node costs.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="A new .json file.", show_default=False)],
    largest_part: LargestPart = False,
    note: Annotated[str, typer.Option(help="A line for the ledger.")] = "",
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check everything but the answers, say the cost, read nothing."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Release who has heard: pay, then flip each answer with a chance that epsilon sets.

    The promise is for each node's own answer; those of others tell about it too. It is not that
    nobody learns where it began: another start changes the answers of many. Whoever runs this reads
    everybody's exact answers, the central model; a ledger of --model local is for a node that
    releases its own row alone.
    """
    from sfumato.privacy import RandomisedResponse
    from sfumato.privacy.accounting import encode
    from sfumato.sensing import whisper_release
    from sfumato.sensing.whisper import bound_of

    hush = quiet or json
    check_outputs([out], {".json"}, reads=[answers, graph, ledger])
    net, names = _connected(graph, largest_part=largest_part)
    mechanism = RandomisedResponse(epsilon)
    book = _book(ledger)
    cost = mechanism.cost(bound_of(net.size))
    book.afford(cost)
    lie = float(mechanism.law[1])
    if dry_run:
        text = f"would cost {cost} for each node, each answer flipped with {percent(lie)}"
        show(
            {"cost": encode(cost), "flipped": lie},
            f"{text}; nothing was read or charged",
            json=json,
        )
        return
    heard = _answers(answers, names, others=largest_part)
    who = [node for node, name in enumerate(names) if name in heard]
    paid = whisper_release([heard[names[node]] for node in who], epsilon, ledger=book, note=note)

    def write(path: Path) -> None:
        # A release with more beside it: `ledger verify --against` reads it as one.
        about = {"nodes": list(names), "edges": net.edges.tolist(), "answered": who}
        write_file(path, json_.dumps({**paid.to_json(), "whisper": about}, indent=1) + "\n")

    keep_paid(write, [out], receipt=paid.entry.hash, what="answers")
    say(f"released {len(who)} answers, {paid.guarantee}", quiet=hush)
    result = {
        "written": str(out),
        "answers": len(who),
        "statement": str(paid.guarantee),
        "flipped": lie,
    }
    show(result, str(out), json=json)


@app.command()
@sentences
def locate(
    said: Annotated[
        list[Path],
        typer.Argument(
            help="Answers with noise (.json), as `whisper release` wrote them: one file of all nodes, or "
            "several of one graph and one epsilon, in the local model one of each node.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="A .json file with the probability of every node.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw it: a .png file.", show_default=False)
    ] = None,
    communities: Annotated[int, typer.Option(help="Of how many communities.", min=1)] = 2,
    share: Annotated[
        float, typer.Option(help="The set of nodes named holds the start with this.")
    ] = 0.9,
    rate: Annotated[
        float | None,
        typer.Option(help="How far it spreads, with --strength; otherwise averaged over 15."),
    ] = None,
    strength: Annotated[
        float | None, typer.Option(help="How many people the start tells, on average.")
    ] = None,
    start: Annotated[
        str,
        typer.Option(
            help="The true start of a simulation: a node's name, or the start.csv of `whisper simulate`.",
            show_default=False,
        ),
    ] = "",
    layout: Annotated[
        Path | None, typer.Option(help="Where to draw the nodes: table of node, x, y.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of --out and --plot.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say where it began: how likely each community and each node is; it costs nothing more."""
    import numpy as np

    from sfumato.sensing import communities as groups_of
    from sfumato.sensing import whisper_posterior
    from sfumato.sensing.whisper import merged_answers

    hush = quiet or json
    check_outputs([out] if out else [], {".json"}, reads=[*said, layout], overwrite=overwrite)
    check_outputs([plot] if plot else [], {".png"}, reads=[*said, layout], overwrite=overwrite)
    told = merged_answers([(str(path), read_whisper(path)) for path in said])
    net, names, answers = told.graph, told.names, told.said
    if start.endswith(".csv") and start not in names:
        start = str(column(read_rows(Path(start)), "node", Path(start))[0])
    if start and start not in names:
        raise InvalidParameter(f"there is no node {start!r}; nothing was computed")
    if not 0 < share < 1:
        raise InvalidParameter(
            f"--share must lie between 0 and 1, got {share}; nothing was computed"
        )
    asked = int((answers >= 0).sum())
    with working(f"looking for the start among {net.size} nodes", quiet=hush):
        labels = groups_of(net, count=communities)
        found = whisper_posterior(
            net, answers, epsilon=told.epsilon, spread=_spread(rate, strength), labels=labels
        )
    chosen = found.smallest(share)
    result: dict[str, Any] = {
        "rehearsal": any(receipt.rehearsal for receipt in told.receipts),
        "statement": told.statement,
        "nodes": net.size,
        "answers": asked,
        "communities": [
            {"label": k, "nodes": int((labels == k).sum()), "probability": float(p)}
            for k, p in enumerate([] if found.community is None else found.community.shares)
        ],
        "share": share,
        "smallest": [
            {"node": names[i], "probability": float(found.nodes[i])} for i in chosen.tolist()
        ],
        "limits": SAFER,
    }
    if start:
        at = names.index(start)
        result["start"] = {
            "node": start,
            "probability": float(found.nodes[at]),
            "rank": 1 + int((found.nodes > found.nodes[at]).sum()),
            "community": int(labels[at]),
            "in_smallest": bool(np.isin(at, chosen)),
        }
    if out is not None:
        whole = {**result, "probabilities": dict(zip(names, found.nodes.tolist(), strict=True))}
        write_file(out, json_.dumps(whole, indent=1) + "\n", overwrite=overwrite)
    if plot is not None:
        picture = _draw(found, answers, labels, chosen, names, layout, result)
        write_file(plot, picture, overwrite=overwrite)
    show(result, _told(result), json=json)


@app.command()
@sentences
def simulate(
    folder: Annotated[Path, typer.Argument(help="A new folder for the files.", show_default=False)],
    nodes: Annotated[int, typer.Option(help="Nodes, in two communities.", min=4)] = 200,
    graph: Annotated[
        Path | None,
        typer.Option(help="Instead: make up a whisper on this graph of your own: u, v."),
    ] = None,
    mouth_to_mouth: Annotated[
        float | None,
        typer.Option(
            help="It runs along edges, each with this chance; otherwise as the model has it."
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same whisper again.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make up a network and a whisper that began somewhere in it: to try everything on."""
    from sfumato.sensing import Spread, block_graph, whisper_cascade, whisper_spread

    rng = chance(seed)
    if graph is None:
        half = nodes // 2
        net, _ = block_graph(
            [half, nodes - half], inside=min(1.0, 20 / half), across=0.4 / half, rng=rng
        )
        names = tuple(f"n{node}" for node in range(net.size))
    else:
        net, names = _connected(graph, largest_part=False)
    start = int(rng.integers(net.size))
    if mouth_to_mouth is None:
        degree = 2 * len(net.edges) / net.size
        heard = whisper_spread(net, start, spread=Spread(2 / degree, net.size / 4), rng=rng)
    else:
        heard = whisper_cascade(net, start, chance=mouth_to_mouth, rng=rng)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise InvalidInput(f"{folder} exists already and is kept; choose a new folder") from None
    tables = {
        "edges": (["u", "v"], [(names[u], names[v]) for u, v in net.edges.tolist()]),
        "answers": (
            ["node", "heard"],
            zip(names, ("yes" if bit else "no" for bit in heard), strict=True),
        ),
        "start": (["node"], [(names[start],)]),
    }
    files = {}
    for name, (header, rows) in tables.items():
        files[name] = str(folder / f"{name}.csv")
        write_table(files[name], header, rows)
    say(
        f"made up a whisper that {int(heard.sum())} of {net.size} nodes have heard",
        quiet=quiet or json,
    )
    show(files, "\n".join(files.values()), json=json)


def _connected(path: Path, *, largest_part: bool) -> tuple[Graph, tuple[str, ...]]:
    """A graph along which a whisper can spread; one in parts is refused before anything is paid."""
    net, names, _ = read_graph(path, largest_part=largest_part)
    if net.components().any():
        raise InvalidInput(
            f"the graph of {path} is in several parts; --largest-part keeps one; nothing was charged"
        )
    return net, names


def _book(path: Path) -> Ledger:
    """A ledger that accounts for each node."""
    from sfumato.privacy import Ledger, ReplaceUser
    from sfumato.sensing.whisper import UNIT

    if not path.exists():
        raise InvalidInput(
            f"there is no ledger at {path}; `sfumato ledger create` makes one; nothing was charged"
        )
    book = Ledger(path)
    if book.header.unit != UNIT or book.header.neighbors != ReplaceUser():
        raise LedgerMismatch(
            f"{path} accounts for each {book.header.unit} ({book.header.neighbors}), answers need the unit "
            f"{UNIT!r} and `--neighbors replace`; nothing was charged"
        )
    return book


def _answers(path: Path, names: tuple[str, ...], *, others: bool) -> dict[str, int]:
    """Who has heard; what is no answer is refused by its row, and not quoted."""
    rows = read_rows(path)
    known = set(names)
    heard: dict[str, int] = {}
    for row, (name, word) in enumerate(
        zip(map(str, column(rows, "node", path)), column(rows, "heard", path), strict=True), 1
    ):
        bit = WORDS.get(str(word).lower())
        if bit is None:
            raise InvalidInput(
                f"heard in row {row} of {path} is neither yes nor no; nothing was charged"
            )
        if name not in known:
            if others:  # of a part of the graph that was not kept
                continue
            raise InvalidInput(
                f"row {row} of {path} is of no node of the graph; nothing was charged"
            )
        if name in heard:
            raise InvalidInput(
                f"row {row} of {path} is of a node that answered before; nothing was charged"
            )
        heard[name] = bit
    if not heard:
        raise InvalidInput(f"{path} has no answer of a node of the graph; nothing was charged")
    return heard


def read_whisper(path: Path) -> WhisperAnswers:
    """The answers of a file, with its graph and its receipt."""
    import numpy as np

    from sfumato.privacy import PureDP, read_release
    from sfumato.sensing import read_json
    from sfumato.sensing.whisper import WhisperAnswers
    from sfumato.spaces import Graph

    receipt = read_release(path)
    try:
        about = read_json(path, "a whole release")["whisper"]
        names = tuple(map(str, about["nodes"]))
        net = Graph(about["edges"], nodes=len(names))
        who = np.array(about["answered"], dtype=np.int64)
        said = np.full(len(names), -1, dtype=np.int64)
        if who.ndim != 1 or (who < 0).any() or len(set(who.tolist())) != who.size:
            raise ValueError("its nodes that answered are not told apart")
        if len(set(names)) != len(names):
            raise ValueError("two of its nodes have one name")
        if np.shape(receipt.value) != who.shape:
            raise ValueError("its answers are not one for each node that answered")
        said[who] = receipt.value
        loss = receipt.guarantee.loss
        if not np.isin(receipt.value, (0, 1)).all() or not isinstance(loss, PureDP):
            raise ValueError("its answers are not yes or no with a promise of epsilon")
    except (KeyError, TypeError, ValueError, IndexError) as problem:
        raise InvalidInput(f"{path} is not a file of `whisper release`: {problem}") from None
    return WhisperAnswers(net, names, said, loss.epsilon, (receipt,))


def _spread(rate: float | None, strength: float | None) -> Spread | None:
    from sfumato.sensing import Spread

    if (rate is None) != (strength is None):
        raise InvalidParameter("--rate and --strength go together; nothing was computed")
    return None if rate is None or strength is None else Spread(rate, strength)


def _told(result: dict[str, Any]) -> str:
    likely = sorted(result["communities"], key=lambda one: -one["probability"])
    where = ", ".join(
        f"{one['label']} ({one['nodes']} nodes) with {percent(one['probability'])}"
        for one in likely
    )
    held = result["smallest"]
    first = ", ".join(f"{one['node']} {percent(one['probability'])}" for one in held[:TOLD])
    lines = [
        f"{result['answers']} of {result['nodes']} nodes answered: {result['statement']}",
        f"it began in community {where}",
        f"with {percent(result['share'])} at one of {len(held)} node{'s' * (len(held) != 1)}: {first}"
        + (", ..." if len(held) > TOLD else ""),
        SAFER,
    ]
    if "start" in result:
        one = result["start"]
        lines.append(
            f"truly it began at {one['node']} of community {one['community']}: "
            f"{percent(one['probability'])}, number {one['rank']} of {result['nodes']}, "
            f"{'in' if one['in_smallest'] else 'NOT in'} the set"
        )
    return "\n".join(lines)


def _draw(
    found: WhisperPosterior,
    answers: IntArray,
    labels: IntArray,
    chosen: IntArray,
    names: tuple[str, ...],
    layout: Path | None,
    result: dict[str, Any],
) -> bytes:
    import numpy as np

    from sfumato.figures import draw_graph_recovery

    asked = np.flatnonzero(answers >= 0)
    truth = None
    if "start" in result:
        truth = np.zeros(len(names))
        truth[names.index(result["start"]["node"])] = 1
    return draw_graph_recovery(
        found.graph,
        found.nodes,
        labels=labels,
        readings=answers[asked],
        sensors=asked,
        sources=truth,
        positions=None if layout is None else read_layout(layout, names),
        names=names,
        held=(chosen, f"one of these {chosen.size}, {percent(result['share'])}"),
        titles=("what nodes said, through noise", "where it began"),
        units=("no: 0, yes: 1", "probability"),
        said="start?",
        caption=f"{result['statement']}\n{SAFER}.",
        rehearsal=result["rehearsal"],
    )
