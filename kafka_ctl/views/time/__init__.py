"""Pictures with a time axis: space and time, who led when, the controllers' event queues."""
