"""A cluster of others, looked at through its ZooKeeper: read, kept current, recorded, and never written to."""
