"""What is public of a site: space, sensors, operator, and how far readings can move."""
