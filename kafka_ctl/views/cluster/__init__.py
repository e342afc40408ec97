"""The picture of the cluster: its layout, what travels in it, and how one moment of it looks."""
