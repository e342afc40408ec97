"""What the browser gets beside a film: the player's module and its style sheet."""

from __future__ import annotations

from pathlib import Path

from kafka_ctl.views.palette import css

_HERE = Path(__file__).parent


def read(*names: str) -> str:
    """The text of these files of this folder, one after another."""
    return "".join((_HERE / name).read_text(encoding="utf-8") for name in names)


PLAYER = read("flow.js", "player.js")
"""The module of the player."""
LIVE = PLAYER.replace("export default { render };\n", "") + read("live.js")
"""The module of the living cluster."""
GUESS = PLAYER.replace("export default { render };\n", "") + read("guess.js")
"""The module of a question that is answered in a picture."""
SHEET = read("player.css") + css()
"""The style sheet of both, in both themes."""
