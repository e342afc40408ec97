"""What stands in ZooKeeper: znodes."""
