"""What the wheel carries beside the packages: starters of the lessons, pages and pictures, for `kafka-ctl lab`.

The starters are made while the wheel is built. An editable installation has none of it, for it has the checkout; nor
has the site's wheel, for its pages have them.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILES = ("notebooks/00-start-here.ipynb", "docs/*.md", "diagrams/*.svg")


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
        sys.path.insert(0, self.root)
        from tools.editions import starters, text

        self.made = TemporaryDirectory()
        for name, book in starters().items():
            path = Path(self.made.name, name)
            path.write_bytes(text(book).encode())
            build_data["force_include"][str(path)] = f"kafka_ctl_course/folder/notebooks/starter/{name}"

    def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
        """Remove the starters, which the wheel has."""
        if hasattr(self, "made"):
            self.made.cleanup()
