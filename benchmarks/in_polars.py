"""The questions of `kafka_ctl.history.questions` as a user of polars would write them: expressions on lazy frames."""

from __future__ import annotations

import os
from typing import Any

import polars as pl
from polars import col, when
from polars import lit as value

from benchmarks.polars_departures import AT, BY, NEVER, Departures, before


class Questions(Departures):
    """The other questions, one method for each."""

    def request_amplification(self) -> pl.LazyFrame:
        ours = col("actor").str.starts_with("controller-")
        sent = (
            self.records.filter(col("kind") == "request", ours, col("cause").is_not_null())
            .group_by("history", seq="cause")
            .agg(states=col("topic").count(), requests=(col("target") == "sent").sum())
        )
        events = self.records.filter(col("kind") == "event", ours, col("target") == "started")
        numbers = col("requests", "states").fill_null(0)
        reported = events.select("history", "seq", event="action").join(sent, on=["history", "seq"], how="left")
        return (
            reported.with_columns(numbers)
            .group_by("history", "event")
            .agg(
                pl.len().alias("events"),
                col("requests").sum(),
                col("states").sum(),
                most_requests=col("requests").max(),
                most_states=col("states").max(),
            )
        )

    def reassignments(self) -> pl.LazyFrame:
        by, ids = ["history", "name"], pl.List(pl.Int32)
        names = {"partition": pl.String, "partitions": pl.List(pl.String)}
        fields = pl.Struct({**names, "replicas": ids, "adding": ids, "removing": ids})
        removed, updated = col("action") == "reassignment_removed", col("action") == "full_assignment_updated"
        given_up, caught_up = col("action") == "reassignment_failed", col("action") == "reassignment_caught_up"
        leads, handled = col("action").str.starts_with("reassignment_leader"), col("action") == "handling_reassignment"
        raised, name, epoch = (
            col("action") == "leader_epoch_updated",
            col("name"),
            col("controller_epoch").fill_null(-1),
        )
        reported = updated & (col("adding").list.len() == 0) & (col("removing").list.len() == 0)
        looked = before(when(leads | updated).then(leads), by).fill_null(False)
        marked = when(updated | handled).then(~updated).forward_fill().over(by).fill_null(False)
        another = (epoch.shift(1).over(*by, "run") != epoch).fill_null(True)
        return (
            self.controller()
            .filter(removed | updated | leads | handled | raised | given_up | caught_up)
            .select(*AT, "action", "controller_epoch", message=col("detail").str.json_decode(fields))
            .unnest("message")
            .with_columns(name=when(removed).then("partitions").otherwise(pl.concat_list("partition")))
            .explode("name")
            .sort("history", "seq")
            .with_columns(final=reported & looked, old=(updated.sum().over(by) == 0) | marked)
            .with_columns(
                ends=when("old").then(removed | given_up).otherwise("final"),
                replicas=col("replicas").list.set_difference(col("removing").fill_null([])),
            )
            .with_columns(run=col("ends").cast(int).cum_sum().over(by) - col("ends").cast(int))
            .with_columns(
                taken=when("old")
                .then(handled)
                .when(updated)
                .then(~col("final"))
                .otherwise(another & ~removed & ~given_up)
            )
            .group_by("history", "name", "run", maintain_order=True)
            .agg(
                replicas=col("replicas").drop_nulls().last(),
                start_ms=col("time_ms").filter("taken").min(),
                end_ms=col("time_ms").filter("ends").max(),
                tries=col("taken").sum(),
                extra_epochs=raised.sum(),
            )
            .filter(col("tries") > 0)
            .select(
                "history",
                name.str.extract("(.*)-[0-9]+$").alias("topic"),
                name.str.extract("-([0-9]+)$").cast(pl.Int32).alias("partition"),
                "replicas",
                "start_ms",
                "end_ms",
                (col("end_ms") - col("start_ms")).round(4).alias("duration_ms"),
                "tries",
                "extra_epochs",
            )
        )

    def deletions(self) -> pl.LazyFrame:
        requests = ["starting_deletion", "topics_to_be_deleted"]
        steps = ["deletion_started", "deletion_completed"]
        by_admin = self.records.filter(
            col("section") == "main", col("kind") == "event", col("actor") == "admin", col("action") == "delete_topic"
        ).select(*AT, "topic", action=value("asked"))
        fields = pl.Struct({"topic": pl.String, "topics": pl.List(pl.String)})
        request = col("action").is_in(requests)
        reported = (
            self.controller()
            .filter(col("action").is_in([*requests, *steps]))
            .select(*AT, "action", message=col("detail").str.json_decode(fields))
            .unnest("message")
            .with_columns(topic=when(request).then("topics").otherwise(pl.concat_list("topic")))
            .explode("topic")
            .filter(col("topic").is_not_null())
            .select(*AT, "topic", when(request).then(value("asked")).otherwise("action").alias("action"))
        )
        done = col("action") == "deletion_completed"
        return (
            pl.concat([by_admin, reported])
            .sort("history", "seq")
            .with_columns(run=done.cast(int).cum_sum().over("history", "topic") - done.cast(int))
            .group_by("history", "topic", "run")
            .agg(
                asked_ms=col("time_ms").filter(col("action") == "asked").min(),
                started_ms=col("time_ms").filter(col("action") == "deletion_started").min(),
                completed_ms=col("time_ms").filter(done).max(),
                tries=(col("action") == "deletion_started").sum(),
            )
            .with_columns(duration_ms=(col("completed_ms") - pl.coalesce("asked_ms", "started_ms")).round(4))
            .drop("run")
        )

    def isr_states(self) -> pl.LazyFrame:
        reported = self.records.filter(
            (col("kind") == "partition") | (col("section") == "isr"),
            col("topic").is_not_null(),
            col("error").is_null(),
        ).select(
            *BY,
            "seq",
            "time_ms",
            "kind",
            "isr",
            "replicas",
            "zk_version",
            gone=(col("target") == NEVER).fill_null(False),
            born=((col("kind") == "partition") & (col("source") == NEVER)).fill_null(False),
        )
        life = col("born").cast(pl.Int64).cum_sum().over(BY)
        newest = before(col("version").cum_max(), BY).fill_null(-1)
        newer = col("version").is_null() | (col("version") > newest)
        ends = reported.group_by("history").agg(end_ms=col("time_ms").max())
        isr = when(~col("gone")).then("isr")
        return (
            reported.sort(*BY, "seq")
            .with_columns(
                version=life * 4294967296 + col("zk_version"), assigned=col("replicas").forward_fill().over(BY)
            )
            .filter(col("gone") | (col("isr").is_not_null() & newer))
            .join(ends, on="history", maintain_order="left")
            .select(
                *BY,
                "seq",
                col("time_ms").alias("at_ms"),
                (col("kind") == "broker").alias("by_leader"),
                isr.alias("isr"),
                isr.shift(1).over(BY).alias("isr_before"),
                "assigned",
                pl.coalesce(col("time_ms").shift(-1).over(BY), "end_ms").alias("until_ms"),
            )
        )

    def isr_churn(self) -> pl.LazyFrame:
        left = col("isr_before").list.set_difference("isr").list.len() > 0
        came = col("isr").list.set_difference("isr_before").list.len() > 0
        lasted, size, all_of = col("until_ms") - col("at_ms"), col("isr").list.len(), col("assigned").list.len()
        return (
            self.isr_states()
            .filter(col("isr").is_not_null())
            .group_by(BY)
            .agg(
                shrinks=left.sum(),
                shrinks_by_leader=(left & col("by_leader")).sum(),
                expansions=came.sum(),
                smallest=size.min(),
                under_ms=lasted.filter(size < all_of).sum().round(4),
                single_ms=lasted.filter(size == 1, all_of > 1).sum().round(4),
            )
        )

    def unclean_exposure(self) -> pl.LazyFrame:
        left = col("isr_before").list.set_difference("isr")
        leavers = (
            self.isr_states()
            .filter(col("isr").is_null() | col("isr_before").is_not_null())
            .select(
                *BY,
                "seq",
                broker=when(col("isr").is_null()).then("assigned").otherwise(left),
                out_since_ms=when(col("isr").is_not_null()).then("at_ms"),
            )
            .explode("broker")
            .filter(col("broker").is_not_null())
            .sort("seq")
        )
        elections = self.records.filter(col("kind") == "election", col("target") == "unclean").sort("seq")
        behind = (col("time_ms") - col("out_since_ms")).round(4)
        return elections.join_asof(
            leavers, on="seq", by_left=[*BY, "leader"], by_right=[*BY, "broker"], check_sortedness=False
        ).select(
            *BY,
            col("time_ms").alias("at_ms"),
            "seq",
            "leader",
            col("detail").str.extract("leader_before=([0-9]+)").cast(pl.Int32).alias("leader_before"),
            "out_since_ms",
            behind.alias("behind_ms"),
            behind.round().alias("records_at_risk"),
        )

    def leader_churn(self) -> pl.LazyFrame:
        changed, lasted = col("changed"), col("time_ms").max() - col("time_ms").min()
        once = (*BY, "times")
        return (
            self.moves()
            .filter(col("leader") >= 0)
            .select(*BY, "seq", "time_ms", "leader", "source", preferred=col("replicas").list.first())
            .with_columns(times=col("source").eq_missing("NewPartition").cum_sum().over(BY))
            .with_columns(previous=col("leader").shift(1).over(once))
            .with_columns(changed=(col("leader") != col("previous")).fill_null(False))
            .with_columns(
                replaced=before(when("changed").then("previous"), once),
                lasted=when(col("previous").is_null()).then(lasted.over(once)),
            )
            .group_by(BY)
            .agg(
                elections=pl.len(),
                changes=changed.sum(),
                returns=(changed & (col("leader") == col("replaced"))).sum(),
                leaders=col("leader").n_unique(),
                preferred_changes=(changed & (col("leader") == col("preferred"))).sum(),
                hours=col("lasted").sum() / 3_600_000,
            )
        )

    def imbalance(self) -> pl.LazyFrame:
        known = (
            self.moves()
            .select(
                *BY,
                "seq",
                "time_ms",
                there=col("target") != NEVER,
                leader=when(col("target") == "OnlinePartition").then("leader"),
                preferred=col("replicas").list.get(0, null_on_oob=True).forward_fill().over(BY),
            )
            .filter(col("preferred").is_not_null())
            .with_columns(led_elsewhere=col("leader").ne_missing(col("preferred")).cast(int))
        )
        now = known.filter("there").select(*AT, "led_elsewhere", broker="preferred", preferred=value(1, pl.Int64))
        ended = (
            known.select(
                *AT,
                was_there=col("there").shift(1).over(BY),
                led_elsewhere=-col("led_elsewhere").shift(1).over(BY),
                broker=col("preferred").shift(1).over(BY),
                preferred=value(-1, pl.Int64),
            )
            .filter("was_there")
            .drop("was_there")
        )
        w = ["history", "broker"]
        return (
            pl.concat([now, ended], how="vertical_relaxed")
            .sort("history", "broker", "seq")
            .select(
                *w,
                col("time_ms").alias("at_ms"),
                col("preferred").cum_sum().over(w),
                col("led_elsewhere").cum_sum().over(w),
            )
            .unique([*w, "at_ms"], keep="last", maintain_order=True)
            .with_columns(share=when(col("preferred") > 0).then(col("led_elsewhere") / col("preferred")).otherwise(0.0))
        )

    def transition_counts(self) -> pl.LazyFrame:
        moved = self.records.filter(col("kind").is_in(["partition", "replica"]), col("source").is_not_null())
        names = ["machine", "source", "target"]
        seen = moved.group_by(col("kind").alias("machine"), "source", "target").agg(
            made=col("error").is_null().sum(), refused=col("error").is_not_null().sum()
        )
        return seen.join(self.legal, on=names, how="full", coalesce=True).select(
            *names, col("action").is_not_null().alias("legal"), "action", col("made", "refused").fill_null(0)
        )

    def compare(self) -> pl.LazyFrame:
        def both(answer: Any) -> pl.LazyFrame:
            return answer.agg(
                spoken
                for side, mine in sides.items()
                for spoken in (
                    mine.sum().alias(f"intervals_{side}"),
                    outage.filter(mine).sum().round(4).alias(f"outage_ms_{side}"),
                    outage.filter(mine).quantile(0.5, "linear").round(4).alias(f"median_ms_{side}"),
                    outage.filter(mine).quantile(0.99, "linear").round(4).alias(f"p99_ms_{side}"),
                )
            )

        outage, early = col("outage_ms"), col("history").str.tail(1) < "5"
        sides = {"before": early, "after": ~early}
        known = self.unavailability().with_columns(col("cause").fill_null("unknown"))
        everything = known.with_columns(cause=value("all"))
        return both(pl.concat([known, everything]).group_by("cause"))


class Engine:
    """polars on one dataset; its threads are set by POLARS_MAX_THREADS, before it is imported."""

    def __init__(self, path: str, cores: int, legal: list[tuple]) -> None:
        assert os.environ.get("POLARS_MAX_THREADS") == str(cores), "set POLARS_MAX_THREADS"
        self.questions = Questions(path, legal)

    def ask(self, name: str) -> int:
        """The number of rows of the answer, all of which are made."""
        return len(getattr(self.questions, name)().collect(engine="streaming"))

    def digest(self, name: str) -> dict[str, Any]:
        """Rows, and for each column its values added up."""
        answer = getattr(self.questions, name)().collect(engine="streaming")
        return {"rows": len(answer)} | {column.name: _sum(column) for column in answer}


def _sum(column: pl.Series) -> Any:
    if column.dtype == pl.String:
        return column.str.len_chars().sum()
    values = column.list.sum() if column.dtype == pl.List else column
    return values.sum() if values.count() else None
