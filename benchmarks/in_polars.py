"""The questions of `kafka_ctl.history.questions` as a user of polars would write them: expressions on lazy frames."""

from __future__ import annotations

import os
from typing import Any

import polars as pl
from polars import col, when
from polars import lit as value

BY = ["history", "topic", "partition"]
NEVER = "NonExistentPartition"


def before(expression: pl.Expr, by: list[str]) -> pl.Expr:
    """The last value that was known before, in the order of the rows."""
    return expression.forward_fill().shift(1).over(by)


class Questions:
    """One method for each, with the columns that the questions document."""

    def __init__(self, path: str, legal: list[tuple]) -> None:
        self.records = pl.scan_parquet(f"{path}/kind=*/section=*/*.parquet", hive_partitioning=True)
        names = ["machine", "source", "target", "action"]
        self.legal = pl.LazyFrame(legal, schema=dict.fromkeys(names, pl.String), orient="row")

    def moves(self) -> pl.LazyFrame:
        return self.records.filter(col("kind") == "partition", col("error").is_null()).sort(*BY, "seq")

    def controller(self) -> pl.LazyFrame:
        return self.records.filter(col("kind") == "controller", col("section") == "main")

    def departures(self) -> pl.LazyFrame:
        def cause(kind: str, action: str) -> Any:
            return when(col("kind") == kind, col("action") == action)

        its = ["history", "broker"]
        tries = (
            self.records.filter(
                col("section") == "main",
                col("kind").is_in(["controller", "fault", "broker"])
                | ((col("kind") == "event") & (col("actor") == "admin") & (col("action") == "shutdown")),
            )
            .select(
                "history",
                "seq",
                "time_ms",
                "broker",
                "detail",
                asks=col("kind") == "event",
                cause=pl.coalesce(
                    cause("fault", "kill").then(value("broker crash")),
                    cause("fault", "bounce").then(value("quick restart")),
                    cause("fault", "expire_session").then(value("session expiry")),
                    cause("broker", "controlled-shutdown").then(value("controlled shutdown")),
                    cause("broker", "lost").then(value("broker loss")),
                ),
                elected=cause("controller", "elected").then("broker"),
            )
            .filter(col("cause").is_not_null() | col("asks") | col("elected").is_not_null())
            .sort("history", "seq")
            .with_columns(controller=col("elected").forward_fill().over("history"))
            .filter(col("cause").is_not_null() | col("asks"))
        )  # fmt: skip
        again = (col("cause").shift(-1).over(its) == col("cause")).fill_null(False) & (
            ~col("detail").shift(-1).over(its).str.starts_with("attempt=1 ")
        ).fill_null(True)
        noticed = (col("cause").shift(1).over(its) == "controlled shutdown").fill_null(False)
        leaves = ~col("asks") & ~(
            ((col("cause") == "controlled shutdown") & again) | ((col("cause") == "broker loss") & noticed)
        )
        orderly = col("cause") == "controlled shutdown"
        return (
            tries.with_columns(leaves=leaves.fill_null(False))
            .with_columns(run=col("leaves").cast(int).cum_sum().over(its) - col("leaves"))
            .with_columns(
                began_seq=when(orderly).then(col("seq").first().over(*its, "run")).otherwise("seq"),
                began_ms=when(orderly).then(col("time_ms").first().over(*its, "run")).otherwise("time_ms"),
            )
            .filter("leaves")
            .select(
                "history",
                "broker",
                when(col("cause") == "broker crash", col("broker") == col("controller"))
                .then(value("controller crash"))
                .otherwise("cause")
                .alias("cause"),
                col("seq").alias("cause_seq"),
                col("time_ms").alias("at_ms"),
                "began_seq",
                "began_ms",
                attempts=col("detail").str.extract("attempt=([0-9]+)").cast(pl.Int32),
                remaining=when(col("detail").str.ends_with("remaining="))
                .then(0)
                .when(col("detail").str.contains("remaining=", literal=True))
                .then(col("detail").str.count_matches(",", literal=True) + 1),
            )
        )  # fmt: skip

    def unavailability(self) -> pl.LazyFrame:
        states = ["NewPartition", "OfflinePartition"]
        known = (
            self.moves()
            .select(
                *BY, "seq", "time_ms", "source", "target", "controller_epoch",
                leader=when(col("leader") != -1).then("leader"),
                down=col("target").is_in(states) | (col("leader") == -1).fill_null(False),
                from_down=col("source").is_in(states).fill_null(False),
                new=((col("source") == "NewPartition") | (col("target") == "NewPartition")).fill_null(False),
            )
            .with_columns(
                was_down=col("down").shift(1, fill_value=False).over(BY),
                going=(col("source") == "OnlinePartition")
                & (col("target").shift(-1).over(BY) == NEVER).fill_null(False),
                led=before(col("leader"), BY),
                led_ms=before(when(col("leader").is_not_null()).then("time_ms"), BY),
            )
            .filter((col("down") != col("was_down")) | (~col("down") & col("from_down")))
            .with_columns(
                unseen=~col("down") & ~col("was_down"),
                next_ms=col("time_ms").shift(-1).over(BY),
                next_target=col("target").shift(-1).over(BY),
            )
            .filter(col("down") | col("unseen"), ~col("going"))
        )  # fmt: skip
        epochs = self.controller().group_by("history", "controller_epoch").agg(epoch_ms=col("time_ms").min())
        intervals = known.join(epochs, on=["history", "controller_epoch"], how="left").select(
            *BY, "seq", "new", "led_ms",
            leader=when(~col("new")).then("led"),
            start_ms=when("unseen").then(pl.coalesce("epoch_ms", "time_ms")).otherwise("time_ms"),
            end_ms=when("unseen").then("time_ms").otherwise("next_ms"),
            restored=when("unseen").then("target").otherwise("next_target") == "OnlinePartition",
        )  # fmt: skip
        blamed = intervals.sort("seq").join_asof(
            self.departures().sort("cause_seq"), left_on="seq", right_on="cause_seq", coalesce=False,
            by_left=["history", "leader"], by_right=["history", "broker"], check_sortedness=False,
        )  # fmt: skip
        lost = pl.min_horizontal("start_ms", pl.max_horizontal("at_ms", "led_ms"))
        return blamed.with_columns(lost_ms=when(col("cause").is_null()).then("start_ms").otherwise(lost)).select(
            *BY, "start_ms", "end_ms", (col("end_ms") - col("start_ms")).round(4).alias("duration_ms"), "restored",
            "leader", when("new").then(value("topic creation")).otherwise("cause").alias("cause"), "cause_seq",
            "lost_ms", (col("end_ms") - col("lost_ms")).round(4).alias("outage_ms"),
        )  # fmt: skip

    def shutdown_vs_failure(self) -> pl.LazyFrame:
        leads = when(col("target") == "OnlinePartition", col("leader") != -1).then("leader")
        changes = self.moves().select(*BY, "seq", leader=leads).with_columns(old=col("leader").shift(1).over(BY))
        won = pl.concat(
            changes.select("history", "seq", value(n).alias("won"), broker=col(name))
            for name, n in (("leader", 1), ("old", -1))
        ).filter(col("broker").is_not_null())
        led = won.sort("seq").select(
            "history", "broker", "seq", led=col("won").cum_sum().over("history", "broker")
        )  # fmt: skip
        known = self.unavailability().filter(col("cause_seq").is_not_null())
        hurt = known.group_by("history", "cause_seq").agg(
            leaderless=pl.len(), unfinished=col("end_ms").null_count(),
            longest_ms=col("outage_ms").max(), outage_ms=col("outage_ms").sum(),
        )  # fmt: skip
        counted = self.departures().sort("began_seq").join_asof(
            led, left_on="began_seq", right_on="seq", by=["history", "broker"], check_sortedness=False
        )  # fmt: skip
        return counted.join(hurt, on=["history", "cause_seq"], how="left").select(
            "history", "broker", "cause", "cause_seq", "began_ms", "at_ms",
            (col("at_ms") - col("began_ms")).round(4).alias("duration_ms"), "attempts", "remaining",
            col("led", "leaderless", "unfinished").fill_null(0),
            col("longest_ms", "outage_ms").fill_null(0).round(4),
        )  # fmt: skip

    def rolling_restarts(self) -> pl.LazyFrame:
        gap = col("began_ms") - col("at_ms").shift(1).over("history")
        return (
            self.shutdown_vs_failure()
            .filter(col("cause") == "controlled shutdown")
            .sort("history", "cause_seq")
            .with_columns(first=(gap > 900_000).fill_null(False))
            .with_columns(session=col("first").cum_sum().over("history"))
            .group_by("history", "session", maintain_order=True)
            .agg(
                start_ms=col("began_ms").min(), end_ms=col("at_ms").max(),
                duration_ms=(col("at_ms").max() - col("began_ms").min()).round(4), brokers=col("broker"),
                moved=col("led").sum(), remaining=col("remaining").sum(), leaderless=col("leaderless").sum(),
                outage_ms=col("outage_ms").sum().round(4),
            )
            .filter(col("brokers").list.n_unique() > 1)
            .drop("session")
        )  # fmt: skip

    def failover_time(self) -> pl.LazyFrame:
        elected = col("action") == "elected"
        terms = self.controller().sort("history", "seq").with_columns(term=elected.cum_sum().over("history", "actor"))
        stages = {
            "elected_ms": "elected", "context_ms": "initializing_context", "replicas_ms": "initializing_replica_state",
            "partitions_ms": "initializing_partition_state", "ready_ms": "ready", "resigned_ms": "resigned",
        }  # fmt: skip
        offices = (
            terms.filter(col("term") > 0)
            .group_by("history", "actor", "term")
            .agg(
                col("seq").min(), col("broker").max().alias("controller"),
                col("controller_epoch").max().alias("epoch"),
                *(col("time_ms").filter(col("action") == action).min().alias(name) for name, action in stages.items()),
                resigned_seq=col("seq").filter(col("action") == "resigned").min(),
            )
            .sort("history", "seq")
            .with_columns(previous=before(col("controller"), ["history"]))
            .sort("seq")
        )  # fmt: skip
        sizes = (
            self.moves()
            .select("history", "seq", n=(col("source") == NEVER).cast(int) - (col("target") == NEVER).cast(int))
            .sort("seq")
            .select("history", "seq", partitions=col("n").cum_sum().over("history"))
        )
        left = (
            self.departures()
            .sort("cause_seq")
            .join_asof(
                offices.select("history", "seq", "controller"), left_on="cause_seq", right_on="seq", by="history",
                check_sortedness=False,
            )
            .filter(col("broker") == col("controller"))
            .select("history", seq="cause_seq", vacant_ms="at_ms")
        )  # fmt: skip
        resigned = offices.filter(col("resigned_seq").is_not_null()).select(
            "history", seq="resigned_seq", vacant_ms="resigned_ms"
        )
        vacant = pl.concat([left, resigned]).sort("seq")
        found = offices.join_asof(sizes, on="seq", by="history", check_sortedness=False).join_asof(
            vacant, on="seq", by="history", check_sortedness=False
        )

        def span(name: str, first: str, last: str) -> pl.Expr:
            return (col(last) - col(first)).round(4).alias(name)

        return found.select(
            "history", "controller", "epoch", "previous", "partitions", "vacant_ms", "elected_ms", "ready_ms",
            span("detection_ms", "vacant_ms", "elected_ms"), span("taking_over_ms", "elected_ms", "context_ms"),
            span("reading_ms", "context_ms", "replicas_ms"), span("replica_ms", "replicas_ms", "partitions_ms"),
            span("partition_ms", "partitions_ms", "ready_ms"), span("failover_ms", "elected_ms", "ready_ms"),
        )  # fmt: skip

    def request_amplification(self) -> pl.LazyFrame:
        ours = col("actor").str.starts_with("controller-")
        sent = (
            self.records.filter(col("kind") == "request", ours, col("cause").is_not_null())
            .group_by("history", seq="cause")
            .agg(states=col("topic").count(), requests=(col("target") == "sent").sum())
        )
        events = self.records.filter(col("kind") == "event", ours, col("target") == "started")
        numbers = col("requests", "states").fill_null(0)
        told = events.select("history", "seq", event="action").join(sent, on=["history", "seq"], how="left")
        return (
            told.with_columns(numbers)
            .group_by("history", "event")
            .agg(
                pl.len().alias("events"), col("requests").sum(), col("states").sum(),
                most_requests=col("requests").max(), most_states=col("states").max(),
            )
        )  # fmt: skip

    def reassignments(self) -> pl.LazyFrame:
        words = pl.Struct({"partition": pl.String, "partitions": pl.List(pl.String), "replicas": pl.List(pl.Int32)})
        handled, removed = col("action") == "handling_reassignment", col("action") == "reassignment_removed"
        name, by = col("name"), ["history", "name"]
        return (
            self.controller()
            .filter(handled | removed | (col("action") == "leader_epoch_updated"))
            .select("history", "seq", "time_ms", "action", said=col("detail").str.json_decode(words))
            .unnest("said")
            .with_columns(name=when(removed).then("partitions").otherwise(pl.concat_list("partition")))
            .explode("name")
            .sort("history", "seq")
            .with_columns(run=removed.cast(int).cum_sum().over(by) - removed.cast(int))
            .group_by("history", "name", "run", maintain_order=True)
            .agg(
                replicas=col("replicas").drop_nulls().last(), start_ms=col("time_ms").filter(handled).min(),
                end_ms=col("time_ms").filter(removed).max(), tries=handled.sum(),
                extra_epochs=(col("action") == "leader_epoch_updated").sum(),
            )
            .filter(col("tries") > 0)
            .select(
                "history", name.str.extract("(.*)-[0-9]+$").alias("topic"),
                name.str.extract("-([0-9]+)$").cast(pl.Int32).alias("partition"), "replicas", "start_ms", "end_ms",
                (col("end_ms") - col("start_ms")).round(4).alias("duration_ms"), "tries", "extra_epochs",
            )
        )  # fmt: skip

    def deletions(self) -> pl.LazyFrame:
        asked = self.records.filter(
            col("section") == "main", col("kind") == "event", col("actor") == "admin", col("action") == "delete_topic"
        ).select("history", "seq", "time_ms", "topic", action=value("asked"))
        words = pl.Struct({"topic": pl.String, "topics": pl.List(pl.String)})
        told = (
            self.controller()
            .filter(col("action").is_in(["deletion_started", "deletion_completed"]))
            .select("history", "seq", "time_ms", "action", said=col("detail").str.json_decode(words))
            .unnest("said")
            .select(
                "history", "seq", "time_ms", pl.coalesce("topic", col("topics").list.first()).alias("topic"), "action"
            )
        )
        done = col("action") == "deletion_completed"
        wished = pl.coalesce("asked_ms", "started_ms")
        return (
            pl.concat([asked, told])
            .sort("history", "seq")
            .with_columns(run=done.cast(int).cum_sum().over("history", "topic") - done.cast(int))
            .group_by("history", "topic", "run")
            .agg(
                asked_ms=col("time_ms").filter(col("action") == "asked").min(),
                started_ms=col("time_ms").filter(col("action") == "deletion_started").min(),
                completed_ms=col("time_ms").filter(done).max(), tries=(col("action") == "deletion_started").sum(),
            )
            .with_columns(duration_ms=(col("completed_ms") - wished).round(4))
            .drop("run")
        )  # fmt: skip

    def isr_states(self) -> pl.LazyFrame:
        told = self.records.filter(
            (col("kind") == "partition") | (col("section") == "isr"), col("topic").is_not_null(),
            col("error").is_null(),
        ).select(
            *BY, "seq", "time_ms", "kind", "isr", "replicas", "zk_version",
            gone=(col("target") == NEVER).fill_null(False),
            born=((col("kind") == "partition") & (col("source") == NEVER)).fill_null(False),
        )  # fmt: skip
        life = col("born").cast(pl.Int64).cum_sum().over(BY)
        newest = before(col("version").cum_max(), BY).fill_null(-1)
        newer = col("version").is_null() | (col("version") > newest)
        ends = told.group_by("history").agg(end_ms=col("time_ms").max())
        isr = when(~col("gone")).then("isr")
        return (
            told.sort(*BY, "seq")
            .with_columns(
                version=life * 4294967296 + col("zk_version"), assigned=col("replicas").forward_fill().over(BY)
            )
            .filter(col("gone") | (col("isr").is_not_null() & newer))
            .join(ends, on="history", maintain_order="left")
            .select(
                *BY, "seq", col("time_ms").alias("at_ms"), (col("kind") == "broker").alias("by_leader"),
                isr.alias("isr"), isr.shift(1).over(BY).alias("isr_before"), "assigned",
                pl.coalesce(col("time_ms").shift(-1).over(BY), "end_ms").alias("until_ms"),
            )
        )  # fmt: skip

    def isr_churn(self) -> pl.LazyFrame:
        left = col("isr_before").list.set_difference("isr").list.len() > 0
        came = col("isr").list.set_difference("isr_before").list.len() > 0
        lasted, size, all_of = col("until_ms") - col("at_ms"), col("isr").list.len(), col("assigned").list.len()
        return (
            self.isr_states()
            .filter(col("isr").is_not_null())
            .group_by(BY)
            .agg(
                shrinks=left.sum(), shrinks_by_leader=(left & col("by_leader")).sum(), expansions=came.sum(),
                smallest=size.min(), under_ms=lasted.filter(size < all_of).sum().round(4),
                single_ms=lasted.filter(size == 1, all_of > 1).sum().round(4),
            )
        )  # fmt: skip

    def unclean_exposure(self) -> pl.LazyFrame:
        leavers = (
            self.isr_states()
            .filter(col("isr").is_not_null(), col("isr_before").is_not_null())
            .select(
                *BY, "seq", broker=col("isr_before").list.set_difference("isr"), out_since_ms=col("at_ms")
            )
            .explode("broker")
            .filter(col("broker").is_not_null())
            .sort("seq")
        )  # fmt: skip
        elections = self.records.filter(col("kind") == "election", col("target") == "unclean").sort("seq")
        behind = (col("time_ms") - col("out_since_ms")).round(4)
        return elections.join_asof(
            leavers, on="seq", by_left=[*BY, "leader"], by_right=[*BY, "broker"], check_sortedness=False
        ).select(
            *BY, col("time_ms").alias("at_ms"), "seq", "leader",
            col("detail").str.extract("leader_before=([0-9]+)").cast(pl.Int32).alias("leader_before"), "out_since_ms",
            behind.alias("behind_ms"), behind.round().alias("records_at_risk"),
        )  # fmt: skip

    def leader_churn(self) -> pl.LazyFrame:
        changed = col("changed")
        return (
            self.moves()
            .filter(col("leader") >= 0)
            .select(*BY, "seq", "time_ms", "leader", preferred=col("replicas").list.first())
            .with_columns(previous=col("leader").shift(1).over(BY))
            .with_columns(changed=(col("leader") != col("previous")).fill_null(False))
            .with_columns(replaced=before(when("changed").then("previous"), BY))
            .group_by(BY)
            .agg(
                elections=pl.len(), changes=changed.sum(), returns=(changed & (col("leader") == col("replaced"))).sum(),
                leaders=col("leader").n_unique(),
                preferred_changes=(changed & (col("leader") == col("preferred"))).sum(),
                hours=(col("time_ms").max() - col("time_ms").min()) / 3_600_000,
            )
        )  # fmt: skip

    def imbalance(self) -> pl.LazyFrame:
        known = (
            self.moves()
            .select(
                *BY, "seq", "time_ms", there=col("target") != NEVER,
                leader=when(col("target") == "OnlinePartition").then("leader"),
                preferred=col("replicas").list.get(0, null_on_oob=True).forward_fill().over(BY),
            )
            .filter(col("preferred").is_not_null())
            .with_columns(astray=col("leader").ne_missing(col("preferred")).cast(int))
        )  # fmt: skip
        now = known.filter("there").select(
            "history", "seq", "time_ms", "astray", broker="preferred", preferred=value(1, pl.Int64)
        )
        ended = (
            known.select(
                "history", "seq", "time_ms", was_there=col("there").shift(1).over(BY),
                astray=-col("astray").shift(1).over(BY), broker=col("preferred").shift(1).over(BY),
                preferred=value(-1, pl.Int64),
            )
            .filter("was_there").drop("was_there").select("history", "seq", "time_ms", "astray", "broker", "preferred")
        )  # fmt: skip
        w = ["history", "broker"]
        return (
            pl.concat([now, ended], how="vertical_relaxed")
            .sort("history", "broker", "seq")
            .select(
                *w, col("time_ms").alias("at_ms"), col("preferred").cum_sum().over(w), col("astray").cum_sum().over(w)
            )
            .unique([*w, "at_ms"], keep="last", maintain_order=True)
            .with_columns(share=when(col("preferred") > 0).then(col("astray") / col("preferred")).otherwise(0.0))
        )  # fmt: skip

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
        """How many rows the answer has, all of which are made."""
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
