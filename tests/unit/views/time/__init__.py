"""Pictures with time: pauses, the timeline."""
