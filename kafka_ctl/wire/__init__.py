"""Kafka's wire protocol: messages as bytes and back, brokers that listen, and what they answer."""
