"""A cluster for tests of programs that use Kafka: `kafka-ctl serve`, its control endpoint, and a fixture of pytest."""
