"""`sfumato sense`: sites, readings, recoveries, tracks, whispers and plans."""
