"""A ZooKeeper in this process, on virtual time."""
