"""Where the checkout is."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The checkout: the folder that holds `kafka_ctl/`, `notebooks/` and `requirements.txt`."""
