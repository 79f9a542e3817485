"""`python -m sfumato` is the command `sfumato`, by the interpreter that is named."""

from sfumato.cli.main import main

if __name__ == "__main__":
    main()
