"""The widgets of a saved notebook in a page of nbconvert: players play in it, without a network and without Python.

nbconvert's own pages load every widget by programs from the internet, and show nothing where that cannot be reached.
`config/jupyter_nbconvert_config.json` adds this step to each page of HTML that is made in the environment.
"""

from __future__ import annotations

from html import escape

from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode

from kafka_ctl.views.export import page_of
from kafka_ctl.views.widget.payload import Data

VIEW = "application/vnd.jupyter.widget-view+json"
STATE = "application/vnd.jupyter.widget-state+json"
FIT = "this.style.height = this.contentDocument.documentElement.scrollHeight + 'px'"


class SavedPlayers(Preprocessor):
    """Puts a page with the saved frames in the place of each player, and a widget's picture in that of any other."""

    def preprocess(self, nb: NotebookNode, resources: Data) -> tuple[NotebookNode, Data]:
        """The notebook and its resources, with the outputs changed that have a picture beside their widget."""
        saved = nb.metadata.get("widgets", {}).get(STATE, {}).get("state", {})
        for output in (output for cell in nb.cells for output in cell.get("outputs", ())):
            data = output.get("data", {})
            if VIEW in data and "text/html" in data:
                state = saved.get(data.pop(VIEW)["model_id"], {}).get("state", {})
                if state.get("film", {}).get("views"):
                    data["text/html"] = _playing(state)
        return nb, resources


def _playing(state: Data) -> str:
    """The player of a saved state, at its step, as a page within the page; nothing is there to answer "why?"."""
    page = page_of(state["film"] | {"index": state.get("index", 0), "asks": False})
    return f'<iframe style="width: 100%; border: 0" onload="{FIT}" srcdoc="{escape(page)}"></iframe>'
