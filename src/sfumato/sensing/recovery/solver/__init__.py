"""The least mass that explains readings: interior point, exchange of cells, crossover, and the proof."""
