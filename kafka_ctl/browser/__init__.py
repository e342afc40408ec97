"""The kit on a page of a browser that has Python (Pyodide) and no Jupyter: the try-it page of `kafka-ctl site`."""
