"""Run the audit experiments: python -m experiments.audit."""

from experiments.audit.report import CAMPAIGN

if __name__ == "__main__":
    CAMPAIGN.main()
