"""Several rounds of readings of one scene: averaged, or followed."""
