"""Run the online experiments: python -m experiments.online."""

from experiments.online.report import CAMPAIGN

if __name__ == "__main__":
    CAMPAIGN.main()
