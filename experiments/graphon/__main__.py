"""Run the graphon experiments: python -m experiments.graphon."""

from experiments.graphon.report import CAMPAIGN

if __name__ == "__main__":
    CAMPAIGN.main()
