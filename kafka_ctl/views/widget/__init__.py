"""The widgets in the browser: the player, the living cluster, two runs side by side, and their data."""
