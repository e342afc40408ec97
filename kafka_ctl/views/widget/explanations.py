"""The texts beside a film of a lab's trace: the lines of Kafka's log, and for every step an answer to "why?"."""

from __future__ import annotations

import json
from collections.abc import Sequence

from kafka_ctl.generation import Generation
from kafka_ctl.kafka_log.write import KafkaLogs
from kafka_ctl.trace.record import Record, Recorder
from kafka_ctl.views.explain.executed_lines import Lines
from kafka_ctl.views.explain.why import is_offered, whys
from kafka_ctl.views.frames import Film
from kafka_ctl.views.widget.payload import LOGS, Data, payload


def with_log(films: Sequence[Film], records: Sequence[Record], options: Data) -> Data:
    """The films as data, with the lines of both of Kafka's logs if it is known of which generation they are.

    Records that were read from logs have the lines of these, the moment at which they began, and no answers to "why?".
    `options` are those the films were made with. In the answer `asks` says whether "why?" can be answered.
    """
    if not isinstance(records, Recorder) or "generation" not in options:
        return payload(films)
    if records.logged:
        return payload(films, records.logged) | {"began": records.began_ms}
    start = options.get("start") or 0
    lines = KafkaLogs(tuple(LOGS), options["generation"]).add(records)
    logs = {name: [(seq, line) for seq, line in own if seq >= start] for name, own in lines.items()}
    data, generation = payload(films, logs), Generation(options["generation"])
    for frame, made in zip(data["frames"], films[0].frames, strict=True):
        frame["why"] = is_offered(records, made.seqs, generation)
    return data | {"asks": True}


def answered(films: Sequence[Film], records: Sequence[Record], options: Data, lines: Lines | None = None) -> Data:
    """The data of `with_log` with all answers in it, for a page without a program that could be asked.

    The answers are `whys` by frame, and each of the `sources` once.
    """
    data = with_log(films, records, options)
    if not data.get("asks") or not isinstance(records, Recorder):
        return data
    sources: dict[str, int] = {}
    steps = [frame.seqs for frame in films[0].frames]
    found = numbered(whys(records, steps, Generation(options["generation"]), lines), sources)
    return data | {"whys": found, "sources": [json.loads(text) for text in sources]}


def numbered(answers: list[Data | None], sources: dict[str, int]) -> list[Data | None]:
    """These answers with the numbers of their sources, each of which is kept once."""
    for answer in filter(None, answers):
        answer["sources"] = [sources.setdefault(json.dumps(one), len(sources)) for one in answer["sources"]]
    return answers
