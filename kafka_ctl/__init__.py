"""A teaching kit for the ZooKeeper-era Kafka controller."""

from kafka_ctl.cluster import TopicPartition
from kafka_ctl.generation import Generation
from kafka_ctl.lab.lab import Lab

__all__ = ["Generation", "Lab", "TopicPartition"]
