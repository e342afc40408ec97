"""Pictures with a time axis: space and time, leaders over time, the controllers' event queues."""
