"""ZooKeeper in memory: the session and its timeout."""
