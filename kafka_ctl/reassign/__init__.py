"""Kafka's tool for moving partitions, kafka-reassign-partitions: propose, start, verify, list and cancel.

plan.py       its JSON files, what it proposes, who is throttled: plain values
log_dirs.py   what it asks of brokers whose copies are to lie in a certain log directory
tool.py       what it reads and writes in ZooKeeper, and what it prints
"""
