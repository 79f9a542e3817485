"""Noise laws and the sources that draw them: the system's, and keyed streams."""
