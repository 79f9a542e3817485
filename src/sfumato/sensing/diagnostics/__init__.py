"""What readings and operators say of themselves: misfit, faults, resolution, mixing."""
