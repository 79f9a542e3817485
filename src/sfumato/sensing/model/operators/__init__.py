"""How sources spread to sensors: linear maps from masses to readings."""
