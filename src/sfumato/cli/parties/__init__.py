"""`sfumato joint`, `shuffle` and `local`: maps of parties, of many devices, of people who trust nobody."""
