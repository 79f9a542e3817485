"""Run the audit experiments: python -m experiments.audit."""

from experiments.audit.report import main

if __name__ == "__main__":
    main()
