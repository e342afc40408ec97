"""The model at any record of a trace, folded once for questions that come in the order of the records."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from kafka_ctl.trace.model import ClusterModel
from kafka_ctl.trace.record import Recorder

_folded: WeakKeyDictionary[Recorder, ClusterModel] = WeakKeyDictionary()
"""Trace -> the model at the record that was asked for last."""


def model_at(trace: Recorder, seq: int) -> ClusterModel:
    """The model just after the record `seq` of a whole trace."""
    model = _folded.get(trace)
    if model is None or model.seq > seq:
        model = _folded[trace] = ClusterModel()
    return model.apply_all(trace.records[model.seq + 1 : seq + 1])
