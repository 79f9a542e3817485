"""`sfumato sense key|unseal`: keys of sealed readings, and the noise taken off by who holds one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.console import Json, Quiet, say, sentences, show
from sfumato.errors import InvalidInput

keys = typer.Typer(
    help="Keys: a master key for whoever may take noise off, a key file for each device."
)

Master = Annotated[Path, typer.Argument(help="The master key.", show_default=False)]
DeviceName = Annotated[str, typer.Option(help="What the device is called.", show_default=False)]
Replaced = Annotated[
    Path | None,
    typer.Option(
        "--replaced",
        help="The device's present key file: what it seals from now on is refused.",
        show_default=False,
    ),
]
PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help="The passphrase of a locked master key, in the first line of a file; else it is asked for.",
        show_default=False,
    ),
]


@sentences
def unseal(
    readings: Annotated[Path, typer.Argument(help="Sealed readings (.json).", show_default=False)],
    key: Annotated[Path, typer.Option(help="The master key.", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="A new .csv file that only you may read; else they are printed."),
    ] = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take the noise off, exactly: for the holder of the master key. What comes out is private again.

    That it was done is written into the key's log first; `sense key list` shows it.
    """
    from sfumato.sensing.pipeline import unseal_readings
    from sfumato.sensing.render import unsealed

    secret = passphrase_of(key, passphrase_file)
    result = unseal_readings(readings, key, out=out, passphrase=secret)
    remark = "" if quiet else " (private)"
    show(result.to_json(), unsealed(result) if out is None else f"{out}{remark}", json=json)


@keys.command("new")
@sentences
def key_new(
    file: Annotated[
        Path, typer.Argument(help="A new file for the master key.", show_default=False)
    ],
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Ask for a passphrase, and lock the file with it.")
    ] = False,
    passphrase_file: Annotated[
        Path | None,
        typer.Option(help="Lock it with the first line of this file.", show_default=False),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make a master key: keep it off the devices, whoever holds it can take the noise off."""
    from sfumato.sensing.pipeline import make_master_key

    secret = None if passphrase_file is None else _first_line(passphrase_file)
    if passphrase and secret is None:
        secret = str(
            typer.prompt("Passphrase", hide_input=True, confirmation_prompt=True, err=True)
        )
    made = make_master_key(file, passphrase=secret)
    more = "" if secret is None else " with its passphrase"
    say(
        f"made master key {made.id}; who holds {file} can take noise off{more}",
        quiet=quiet or json,
    )
    show(made.to_json(), str(file), json=json)


@keys.command("device")
@sentences
def key_device(
    master: Master,
    file: Annotated[
        Path, typer.Argument(help="A new key file for the device.", show_default=False)
    ],
    name: Annotated[
        str, typer.Option(help="What the device is called; each one has its own name.")
    ],
    passphrase_file: PassphraseFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the key file of one device; it moves forward each time the device starts, and never back."""
    from sfumato.sensing.pipeline import make_device_key

    secret = passphrase_of(master, passphrase_file)
    made = make_device_key(master, file, name=name, passphrase=secret)
    say(f"made a key for device {name!r} under master key {made.id}", quiet=quiet or json)
    show(made.to_json(), str(file), json=json)


@keys.command("check")
@sentences
def key_check(
    master: Master,
    file: Annotated[Path, typer.Argument(help="A new file for the collector.", show_default=False)],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Make the file with which a collector tells who sent a packet; it takes no noise off."""
    from sfumato.sensing.pipeline import make_check_keys

    secret = passphrase_of(master, passphrase_file)
    made = make_check_keys(master, file, overwrite=overwrite, passphrase=secret)
    say(f"made check keys of the devices under master key {made.id}", quiet=quiet or json)
    show(made.to_json(), str(file), json=json)


@keys.command("show", hidden=True)
@keys.command("list")
@sentences
def key_list(master: Master, json: Json = False) -> None:
    """Say which devices have or had a key of a master key, and when noise was taken off, by whom."""
    from sfumato.sensing.pipeline import list_keys
    from sfumato.sensing.render import key_lines

    found = list_keys(master)
    show(found.to_json(), key_lines(found), json=json)


@keys.command("rotate")
@sentences
def key_rotate(
    master: Master,
    file: Annotated[
        Path, typer.Argument(help="A new key file for the device.", show_default=False)
    ],
    name: DeviceName,
    replaced: Replaced = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Give a device a new key, which does not follow from its old one; what that one sealed still opens."""
    from sfumato.sensing.pipeline import rotate_device_key

    secret = passphrase_of(master, passphrase_file)
    made = rotate_device_key(master, file, name=name, replaced=replaced, passphrase=secret)
    say(f"device {name!r} goes on as {made.device!r}: give it {file}", quiet=quiet or json)
    show(made.to_json(), str(file), json=json)


@keys.command("retire")
@sentences
def key_retire(
    master: Master,
    name: DeviceName,
    replaced: Replaced = None,
    passphrase_file: PassphraseFile = None,
    json: Json = False,
) -> None:
    """End the key of a device: its name is not given again, and what it sealed still opens."""
    from sfumato.sensing.pipeline import retire_device_key
    from sfumato.sensing.render import key_lines

    secret = passphrase_of(master, passphrase_file)
    found = retire_device_key(master, name=name, replaced=replaced, passphrase=secret)
    show(found.to_json(), key_lines(found), json=json)


def passphrase_of(key: Path, file: Path | None) -> str | None:
    """The passphrase of a master key: that of a file, or asked for where the key is locked."""
    from sfumato.sensing.release import is_locked

    if file is not None:
        return _first_line(file)
    if not is_locked(key):
        return None
    return str(typer.prompt(f"Passphrase of {key}", hide_input=True, err=True))


def _first_line(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0]
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"cannot read {file}; nothing was done") from None
