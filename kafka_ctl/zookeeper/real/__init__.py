"""Any real ZooKeeper."""
