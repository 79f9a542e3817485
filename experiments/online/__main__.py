"""Run the online experiments: python -m experiments.online."""

from experiments.online.report import main

if __name__ == "__main__":
    main()
