"""What a notebook shows: the live lab and the player."""
