"""A cluster of others: reading it, and watching it change."""
