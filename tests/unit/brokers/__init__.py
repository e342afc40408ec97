"""Brokers: the broker itself, fetching, identity, the log, log dirs, purgatory, record
deletion, stopping, the timing wheel, topic configs.
"""
