"""Before anything is read: forecasts, designs, requirements, placement, bounds."""
