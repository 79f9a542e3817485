"""`sfumato audit`: claims refuted, certificates, replays, and what they show while they run."""
