"""Whisper networks: in which community something began."""
