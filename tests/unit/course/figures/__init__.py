"""The lessons' figures: a deletion, placement, a reassignment and its znodes, those for teaching."""
