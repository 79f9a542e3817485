"""Run the graphon experiments: python -m experiments.graphon."""

from experiments.graphon.report import main

if __name__ == "__main__":
    main()
