"""Private heatmaps: rows of (user, place) in, a differentially private map out."""
