"""Black boxes, the inputs they are run on, and their outputs as rows of numbers."""
