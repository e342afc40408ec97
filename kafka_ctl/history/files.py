"""Any file system: this machine's, those pyarrow speaks to (HDFS, S3, GCS), and those of installed fsspec packages."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.fs as pafs

from kafka_ctl.errors import Unavailable

SAME = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names of file systems that pyarrow calls otherwise."""


def filesystem(path: str | os.PathLike[str]) -> tuple[pafs.FileSystem, str, str]:
    """The file system of a path or URI, the path inside it, and what makes such a path a URI for Spark again.

    Raises Unavailable for a scheme that neither pyarrow nor an installed fsspec package knows.
    """
    given = os.fspath(path)
    if "://" not in given:
        return pafs.LocalFileSystem(), os.path.abspath(given), ""
    scheme, _, rest = given.partition("://")
    uri = f"{SAME.get(scheme, scheme)}://{rest}"
    try:
        fs, root = pafs.FileSystem.from_uri(uri)
    except pa.ArrowInvalid:
        fs, root = _fsspec(scheme, uri)
    inside = rest.removesuffix("/")
    return fs, root, given[: len(scheme) + 3 + len(inside) - len(root)] if inside.endswith(root) else ""


def _fsspec(scheme: str, uri: str) -> tuple[pafs.FileSystem, str]:
    try:
        import fsspec

        found, root = fsspec.core.url_to_fs(uri)
    except (ImportError, ValueError) as problem:
        raise Unavailable(
            f"{uri}: no file system for {scheme}:// here; install its fsspec package ({problem})"
        ) from None
    return pafs.PyFileSystem(pafs.FSSpecHandler(found)), root
