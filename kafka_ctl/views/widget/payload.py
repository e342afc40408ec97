"""The browser's side of a film: its data (the drawing once, then only what changes), modules, style sheet, messages.

Beside a film of a lab's trace stand the lines of Kafka's log, and for every step an answer to "why?".
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from kafka_ctl.errors import BadInput, short
from kafka_ctl.generation import Generation
from kafka_ctl.kafka_log.write import KafkaLogs
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.dot import FAMILY, printable
from kafka_ctl.views.explain.source import Lines
from kafka_ctl.views.explain.why import Explainer, is_offered
from kafka_ctl.views.frames import Film, Frame, PartState, Token
from kafka_ctl.views.legend import PREFIX
from kafka_ctl.views.palette import GLYPHS, css
from kafka_ctl.views.scene import Part, Scene, glyph_svg, shape_svg, svg_head, text_svg

Data = dict[str, Any]
"""The data for the browser, as JSON."""
Logs = Iterable[tuple[int, object]]
"""Lines of Kafka's logs (what `str` makes of them), each with the `seq` of its record."""
LOGS = {"state-change": "log", "controller": "events"}
"""Kafka's logs, and the names of a frame's lines of them."""
LINES = 60
"""The most log lines that are shown beside one frame."""


def payload(films: Sequence[Film], logs: Mapping[str, Logs] | None = None) -> Data:
    """Films that keep step with one another, as JSON-able data for `player.js`.

    `logs` are the lines of Kafka's logs by seq: those of `state-change` and of `controller`.
    """
    gauges = [frame.picture.gauges for frame in films[0].frames]
    new = [now if now != before else None for before, now in pairwise([None, *gauges])]
    frames = [
        frame_data(f.kind, f.time_ms, f.caption, f.picture.summary, f.cause, f.seqs, _differs(films, n), new[n])
        for n, f in enumerate(films[0].frames)
    ]
    add_logs(frames, [f.seqs for f in films[0].frames], logs or {})
    return {"frames": frames, "glyphs": GLYPHS, "views": [view_data(film) for film in films]}


def _differs(films: Sequence[Film], index: int) -> str:
    """The holders of state that differs from ZooKeeper, from the first film that knows them."""
    return next(filter(None, (film.frames[index].picture.differs for film in films)), "")


def frame_data(
    kind: str,
    time_ms: float,
    caption: str,
    summary: str,
    cause: int | None,
    seqs: Sequence[int],
    differs: str = "",
    gauges: Sequence[tuple[str, str, str]] | None = (),
) -> Data:
    """The data of a frame apart from its pictures; `differs` names those that differ from ZooKeeper.

    `gauges` are None where they are as in the frame before.
    """
    data: Data = {"kind": kind, "time": time_ms, "caption": printable(caption), "summary": printable(summary)}
    data |= {"differs": printable(differs), "cause": cause, "seqs": list(seqs[:50])}
    data |= {} if gauges is None else {"gauges": [*map(list, gauges)]}
    return data | {name: [] for name in LOGS.values()}


def add_logs(frames: Sequence[Data], seqs: Sequence[Sequence[int]], logs: Mapping[str, Logs]) -> None:
    """Put the lines of each of Kafka's logs into the frames whose records they come from."""
    for name, lines in logs.items():
        for frame, own in zip(frames, by_frame(seqs, lines), strict=True):
            frame[LOGS[name]] = own


def by_frame(seqs: Sequence[Sequence[int]], logs: Logs) -> list[list[str]]:
    """Each line with the frame that shows its record, or else with the frame before it."""
    frame_of = {seq: index for index, own in enumerate(seqs) for seq in own}
    data = [list[object]() for _ in seqs]
    ends = list(accumulate((own[-1] if own else -1 for own in seqs), max))
    for seq, line in logs:
        if data:
            data[frame_of.get(seq, max(0, bisect_right(ends, seq) - 1))].append(line)
    more = [[f"… and {len(lines) - LINES} lines more"] if len(lines) > LINES else [] for lines in data]
    return [[printable(str(line)) for line in lines[:LINES] + end] for lines, end in zip(data, more, strict=True)]


def view_data(film: Film, rows: Rows | None = None) -> Data:
    """One view: its drawing, and per part and frame only the changes."""
    rows = rows or Rows()
    data = {"view": film.view, "title": film.title, "svg": drawing(film), **rows.add(film.frames)}
    data["legend"] = legend(film.scene)
    return data | ({"flow": flow(film.scene)} if film.scene.rows else {})


def legend(scene: Scene) -> list[list[str]]:
    """The entries of the legend: the styles and the kind of a mark, its words, and its picture."""
    found = []
    for number, entry in enumerate(scene.entries):
        part = scene.parts[f"{PREFIX}{number}"]
        width, height = part.box.width + 4, part.box.height + 4
        place = f"{part.box.x - 2:g} {part.box.y - 2:g} {width:g} {height:g}"
        head = f'<svg viewBox="{place}" width="{width:g}" height="{height:g}" font-family="{FAMILY}">'
        found.append([entry.styles, entry.kind, entry.text, f"{head}{part_svg(part)}</svg>"])
    return found


def flow(scene: Scene) -> Data:
    """The rows of a drawing as `flow.js` wraps them: of each block its id, x, y, width and height."""

    def place(name: str) -> list[object]:
        return [name, *(round(v, 1) for v in scene.parts[name].box)]

    rows: list[Data] = []
    for row in scene.rows:
        frame = place(row.frame) if row.frame else None
        rows.append(row._asdict() | {"blocks": [place(name) for name in row.blocks], "frame": frame})
    return {"rows": rows, "size": [scene.width, scene.height - scene.legend]}


def blocks(scene: Scene) -> dict[str, str]:
    """Part id -> the block that the part stands in, or is."""
    found: dict[str, str] = {}
    names = [name for row in scene.rows for name in row.blocks]
    for part in scene.parts.values() if names else ():
        (x, y), wide = part.box.middle, part.box.width
        for name in names:
            box = scene.parts[name].box
            if 0 < wide <= box.width and box.x <= x <= box.x + box.width and box.y <= y <= box.y + box.height:
                found[part.id] = name
    return found


UNSEEN = PartState("")
"""The look of a part before its first frame."""


class Rows:
    """Frames as rows of changes; each frame is the change from the one before."""

    def __init__(self) -> None:
        self.before: dict[str, PartState] = {}

    def add(self, frames: Sequence[Frame]) -> Data:
        """The tracks by part, per frame what travels, and what the picture only counts.

        `details` are broker -> partition -> changes of how its replica stands; empty when there is none any more.
        """
        tracks: dict[str, list[list[object]]] = {}
        details: dict[str, dict[str, list[list[object]]]] = {}
        for frame in frames:
            for name, look in frame.picture.looks.items():
                row = _row(frame.index, look, self.before.get(name, UNSEEN))
                tracks.setdefault(printable(name), []).append(row)
                self.before[name] = look
            for (broker, name), style in frame.picture.detail.items():
                details.setdefault(str(broker), {}).setdefault(printable(name), []).append([frame.index, style])
        tokens = [[_token(t) for t in frame.picture.tokens] for frame in frames]
        data: Data = {"tracks": tracks, "tokens": tokens}
        return data | ({"details": details} if details else {})


def _row(index: int, look: PartState, before: PartState) -> list[object]:
    """Frame, styles, words, sign and place of a change; 0 stands for what stays as it was."""
    styles, texts, glyph, at = look
    _, words, sign, place = before
    row: list[object] = [index, styles, list(texts) if texts != words else 0, glyph if glyph != sign else 0]
    if at is not None and at != place:
        return [*row, [round(at[0], 1), round(at[1], 1)]]
    while row[-1] == 0:
        row.pop()
    return row


def _token(token: Token) -> list[object]:
    places = (round(v, 1) for v in (*token.place, token.wide))
    row = [token.line, printable(token.label), token.styles, *places]
    return [*row, token.ends] if any(token.ends) else row


def drawing(film: Film) -> str:
    """The scene with classes instead of colours, without its legend; every part carries its id."""
    scene, (x, y) = film.scene, film.scene.offset
    within = blocks(scene)
    parts = [part for part in scene.parts.values() if not part.id.startswith(PREFIX)]
    loose = "".join(part_svg(part, within.get(part.id, "")) for part in parts if not part.pinned)
    pinned = "".join(part_svg(part) for part in parts if part.pinned)
    inside = f'<g class="part" data-id="camera">{loose}<g class="travel"></g></g>{pinned}'
    head = svg_head(scene.width, scene.height - scene.legend, film.title)
    return f'{head}<g transform="translate({x:g} {y:g})">{inside}</g></svg>'


def part_svg(part: Part, block: str = "") -> str:
    """One part: its outline, its sign and its words, to be dressed by class; `block` is what it moves with."""
    pieces = [shape_svg(shape, f' class="{shape.slot}"') for shape in part.shapes]
    if part.glyph:
        pieces.append(glyph_svg(part.glyph, part.sign, ' class="glyph"'))
    for text in part.texts:
        room = f' data-room="{text.room:g}"' if text.room else ""
        pieces.append(text_svg(text, text.text, f' class="label"{room}'))
    classes = " ".join(f"s-{style}" for style in part.styles.split())
    of = f' data-of="{escape(printable(part.of))}"' if part.of else ""
    of += f' data-in="{escape(printable(block))}"' if block else ""
    title = f"<title>{escape(printable(part.title))}</title>" if part.title else ""
    return f'<g class="part {classes}" data-id="{escape(printable(part.id))}"{of}>{title}{"".join(pieces)}</g>'


def read_files(*names: str) -> str:
    """The text of these files of this folder, one after another."""
    return "".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)


PLAYER = read_files("flow.js", "player.js")
"""The module of the player."""
RECORDED = PLAYER + read_files("recorded.js")
"""The module of the player on a page without Python: `recorded` makes the model of a film."""
LIVE = PLAYER.replace("export default { render };\n", "") + read_files("live.js")
"""The module of the living cluster."""
GUESS = PLAYER.replace("export default { render };\n", "") + read_files("guess.js")
"""The module of a question that is answered in a picture."""
SHEET = read_files("player.css") + css()
"""The style sheet of both, in both themes."""


def read_message(given: object) -> Data:
    """A message, which says what to do. Raises BadInput if it is not a dictionary with `do`."""
    if not isinstance(given, dict) or not isinstance(given.get("do"), str):
        raise BadInput(
            f'a message cannot be {short(given)}; it must be a dictionary that says what to do: {{"do": "undo"}}'
        )
    return given


def text_in(asked: Data, name: str) -> str:
    """A text of a message. Raises BadInput if there is none."""
    found = asked.get(name)
    if not isinstance(found, str):
        raise BadInput(f"a message to {asked['do']} needs {name} as text, not {short(found)}")
    return found


def number_in(asked: Data, name: str, count: int) -> int:
    """A number from 0 to `count` - 1 of a message. Raises BadInput if there is none."""
    found = asked.get(name)
    if type(found) is not int or not 0 <= found < count:
        raise BadInput(f"a message to {asked['do']} needs {name} from 0 to {count - 1}, not {short(found)}")
    return found


def texts_in(asked: Data, name: str) -> dict[str, str]:
    """The values of a form, name -> text; empty if the message has none."""
    found = asked.get(name, {})
    if not isinstance(found, Mapping) or not all(isinstance(t, str) for pair in found.items() for t in pair):
        raise BadInput(f"a message to {asked['do']} needs {name} as texts by name, not {short(found)}")
    return dict(found)


def with_log(
    films: Sequence[Film], records: Sequence[Record], options: Data, lines: Lines | None = None
) -> tuple[Data, list[Explainer]]:
    """The films as data, with the lines of both of Kafka's logs if it is known of which generation they are.

    Records that were read from logs have the lines of these, the moment at which they began, and no answers to "why?".
    `options` are those the films were made with. In the data `asks` says whether "why?" can be answered; the run that
    answers it is returned, too.
    """
    if not isinstance(records, Recorder) or "generation" not in options:
        return payload(films), []
    if records.logged:
        return payload(films, records.logged) | {"began": records.began_ms}, []
    start = options.get("start") or 0
    written = KafkaLogs(tuple(LOGS), options["generation"]).add(records)
    logs = {name: [(seq, line) for seq, line in own if seq >= start] for name, own in written.items()}
    data, generation = payload(films, logs), Generation(options["generation"])
    for frame, made in zip(data["frames"], films[0].frames, strict=True):
        frame["why"] = is_offered(records, made.seqs, generation)
    return data | {"asks": True}, [Explainer(records, generation, lines)]


def all_answers(films: Sequence[Film], runs: Sequence[Explainer]) -> Data:
    """The answers, for a page without a program: `whys` by frame, of two runs by frame and run; `sources` once each."""
    sources: dict[str, int] = {}
    found = [run.whys([frame.seqs for frame in film.frames]) for run, film in zip(runs, films, strict=False)]
    for answer in (answer for own in found for answer in own if answer):
        answer["sources"] = [sources.setdefault(json.dumps(one), len(sources)) for one in answer["sources"]]
    every = found[0] if len(found) == 1 else [list(pair) for pair in zip(*found, strict=True)]
    return {"whys": every, "sources": [json.loads(text) for text in sources]}
