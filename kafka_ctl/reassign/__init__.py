"""Kafka's tool for moving partitions, kafka-reassign-partitions: propose, start, verify, list and cancel.

plan.py       its JSON files, what it proposes, who is throttled: plain values
tool.py       what it reads and writes in ZooKeeper, what it asks of brokers, and what it prints
"""
