"""Opening the lessons in JupyterLab."""
