"""What lessons bring along: the quiet cluster, the fetch load."""
