"""The recorder of real Kafka: it plays the stories of `tests/conformance` on real brokers; see the README there."""
