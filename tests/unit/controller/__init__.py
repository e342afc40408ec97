"""The controller: the request batch, its events, failover, deletion, electing, gauges, rebalance,
reassignment, shutdown.
"""
