"""`kafka-ctl site`: a living cluster, the course and the documentation as a static site, without installation.

Separate from `commands.py` because a command is loaded when it is called.
"""

from __future__ import annotations

from pathlib import Path

import click

from kafka_ctl.cli.terminal import echo
from kafka_ctl.paths import ROOT, import_from_checkout

OUT = ROOT / "build" / "site" / "public"


@click.command()
@click.option("--out", default=OUT, type=click.Path(file_okay=False, path_type=Path), help="Write it into this folder.")
@click.option("--serve", is_flag=True, help="Then serve it on 127.0.0.1 until Ctrl-C.")
@click.option("--port", type=click.IntRange(1, 65535), help="With --serve: listen here (default: a free one).")
def site(out: Path, serve: bool, port: int | None) -> None:
    """Build a static site: a living cluster, JupyterLab with every lesson that can run in a browser, the documentation.

    What it is made of is downloaded with pip and npm once, and kept in build/site. The finished folder asks for
    nothing outside itself; any static host can serve it (docs/browser.md). Without --out it is build/site/public.

    \b
    kafka-ctl site --serve
    kafka-ctl site --out /tmp/course
    """
    if port is not None and not serve:
        raise click.UsageError("--port goes with --serve")
    import_from_checkout("tools.site.build").build(out, echo)
    if serve:
        import_from_checkout("tools.site.serve").forever(out, port, echo)
