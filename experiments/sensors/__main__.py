"""Run the sensor experiments: python -m experiments.sensors."""

from experiments.sensors.report import main

if __name__ == "__main__":
    main()
