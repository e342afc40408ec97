"""What runs in the browser: the player, the living cluster, two runs side by side, and the data they get."""
