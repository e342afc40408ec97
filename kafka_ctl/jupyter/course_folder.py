"""The learner's copy of the course: the folder `kafka-ctl-course`, filled from a wheel, renewed from a newer one.

What the learner has changed is never touched. A list in the folder says which version each file came from, by its hash:

    file is not there, or as it was given   the newer one takes its place
    file was changed, the course was not    nothing to do
    both were changed                       the newer one is put beside it, with its version in the name
    as it was given, gone from the course   it is deleted, so that a renamed lesson is there once

Separate from `launch.py` because that one opens whatever folder it is given. In a checkout there is no copy:
`tools/editions.py` makes the starters in it, by the same rule, but puts nothing beside them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from kafka_ctl.errors import BadInput, Unavailable
from kafka_ctl.paths import COURSE_LIST, ROOT

NAME = "kafka-ctl-course"
SHIPPED = ROOT / "kafka_ctl_course" / "folder"
"""The files of the wheel."""


def course_folder(here: Path, shipped: Path = SHIPPED) -> Path:
    """The course's folder: `here` if it is one, else `kafka-ctl-course` in it, made or renewed.

    BadInput where something else has that name, Unavailable where the installation has no lessons.
    """
    if not shipped.is_dir():
        raise Unavailable(f"{shipped} is missing: this installation has no lessons; install the wheel of kafka-ctl")
    folder = here if (here / COURSE_LIST).is_file() else here / NAME
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"{folder} is not a folder; rename it, or start the lab in another folder")
    known = _known(folder / COURSE_LIST)
    if known is None and folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not a copy of the course; rename it, or start the lab in another folder")
    paths = sorted(path for path in shipped.rglob("*") if path.is_file())
    files = {path.relative_to(shipped).as_posix(): path.read_bytes() for path in paths}
    for name in renewed(folder, files, COURSE_LIST):
        print(f"kafka_ctl: you have changed this lesson, so the newer one is beside it: {name}", flush=True)
    return folder


def _known(listed: Path) -> dict[str, str] | None:
    """The hash of each file as it was given; None if there is no list."""
    try:
        files = json.loads(listed.read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {str(name): str(sha) for name, sha in files.items()} if isinstance(files, dict) else None


def renewed(folder: Path, files: Mapping[str, bytes], listed: str, *, beside: bool = True) -> list[str]:
    """Write new files into `folder`, their hashes into its file `listed`, and delete those that the course has no more.

    Files that a learner has changed stay.

    Returns the names of the newer files that were put beside these or, without `beside`, of those that stay.
    """
    known, given, reported = _known(folder / listed) or {}, {}, []
    for name in known.keys() - files.keys():
        old = folder / name
        if old.is_file() and folder.resolve() in old.resolve().parents and _sha(old.read_bytes()) == known[name]:
            old.unlink()
    for name, new in files.items():
        target, given[name] = folder / name, _sha(new)
        if target.is_file() and _sha(target.read_bytes()) not in (known.get(name), given[name]):
            if known.get(name) == given[name]:
                continue
            if beside:
                target = target.with_stem(f"{target.stem}-{version('kafka-ctl')}")
            reported.append(target.relative_to(folder).as_posix())
            if not beside:
                continue
        if not target.is_file() or target.read_bytes() != new:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(new)
    text = json.dumps({"version": version("kafka-ctl"), "files": given}, indent=1) + "\n"
    (folder / listed).write_text(text, "utf-8")
    return reported


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
