"""From a bare Python to a working environment."""
