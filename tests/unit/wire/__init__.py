"""Kafka's protocol: administration, bad requests, validation of records, the codec, control requests, groups, fetch
sessions, idle connections, bounds of memory, producers, readers, the transaction coordinator.
"""
