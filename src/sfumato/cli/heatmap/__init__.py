"""`sfumato heatmap`: releases, rehearsals, saved maps and plans."""
