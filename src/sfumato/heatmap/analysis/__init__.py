"""What is done with a map: compare, read places and zones off it, forecast it."""
