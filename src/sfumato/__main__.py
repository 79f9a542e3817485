"""The command `sfumato`, also as `python -m sfumato`: a sensor starts light, all else is the whole program."""

import sys


def main() -> None:
    """Run the command line."""
    if sys.argv[1:3] == ["sensor", "run"]:
        from sfumato.cli.network.light import run_light

        code = run_light(sys.argv[3:])
        if code is not None:
            sys.exit(code)
    from sfumato.cli.main import main as whole

    whole()


if __name__ == "__main__":
    main()
