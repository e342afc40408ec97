"""What became of what administrators asked for."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from kafka_ctl.history.plots.picture import (
    SERIES,
    STEPS,
    Picture,
    curve,
    legend,
    nothing,
    per_cent,
    picture,
    quantiles,
    readable,
    times,
    width,
)


def durations(**answers: DataFrame) -> Picture:
    """The share of reassignments or deletions done after so long; below 100% are those that never were.

    Give the answers of `questions.reassignments` and `questions.deletions` under any names:
    `durations(deletions=questions.deletions(records))`.
    """
    title = "How long administrators waited"
    figure, axes = picture(title, "from the beginning", "done")
    texts = []
    shown = 0
    for n, ((name, answer), colour) in enumerate(zip(answers.items(), SERIES, strict=False)):
        row = answer.agg(
            fn.count("*").alias("all"), fn.count("duration_ms").alias("done"), quantiles("duration_ms").alias("ms")
        ).collect()[0]
        if row["all"]:
            shown += 1
            look = (colour, ("-", "--", "-.", ":")[n % 4])
            curve(axes, row.ms, row.done / row["all"], f"{name} ({row['all']:,})", look, width(n, len(answers)))
        half = readable(row.ms[STEPS // 2]) if row.ms else "nothing"
        texts.append(f"{name}: {row.done} of {row['all']} done, half of these within {half}")
    if not shown:
        return nothing(title)
    times(axes)
    per_cent(axes)
    legend(axes)
    figure.alt = f"{title}. {'; '.join(texts)}."
    return figure
