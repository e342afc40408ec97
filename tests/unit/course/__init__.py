"""What lessons bring along: the fetch load."""
