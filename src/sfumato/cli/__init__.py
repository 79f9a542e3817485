"""The command `sfumato`: thin, it parses and it prints."""
