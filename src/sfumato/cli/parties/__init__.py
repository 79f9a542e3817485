"""`sfumato joint`, `shuffle` and `local`: maps of several parties, of many devices, of people who trust nobody."""
