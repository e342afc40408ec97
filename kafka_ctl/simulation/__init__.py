"""The worlds in which the actors live: clocks, network, latencies."""
