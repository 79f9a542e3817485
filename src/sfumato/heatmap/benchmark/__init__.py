"""All methods on the same samples: synthetic people, scores, the leaderboard."""
