"""What the wheel carries beside the packages: starters of the lessons, pages and pictures, for `kafka-ctl lab`.

An editable installation has none of it, for it has the checkout; nor has the site's wheel, for its pages have them.
"""

import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("notebooks/00-start-here.ipynb", "notebooks/starter/*.ipynb", "docs/*.md", "diagrams/*.svg")


class CustomBuildHook(BuildHookInterface):
    """Adds the files below `kafka_ctl_course/folder`, each at its place in the checkout."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Add them to a wheel that is to be installed elsewhere."""
        if version != "standard" or "KAFKA_CTL_WITHOUT_COURSE" in os.environ:
            return
        root = Path(self.root)
        for pattern in FILES:
            for path in root.glob(pattern):
                name = path.relative_to(root).as_posix()
                build_data["force_include"][str(path)] = f"kafka_ctl_course/folder/{name}"
