"""A cluster of others: a watch that reads it, what it records, and hostile data."""
