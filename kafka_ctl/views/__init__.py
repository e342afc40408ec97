"""Pictures of a trace: players for the notebook, animated SVG, pages, diagrams.

    from kafka_ctl.views.widget.player import player   a widget that steps, rewinds, jumps and plays
    from kafka_ctl.views.widget.live import Live       a lab to be clicked; `lab` in a notebook shows it
    from kafka_ctl.views.explain.why import why        the rule behind a record, with the lines that ran
    from kafka_ctl.views.export import export          the same as .svg, .html, .png or .gif
    from kafka_ctl.views.machines import digraph       tables, elections and clusters as graphs to go on with

records -> steps.py (one thing that happens) -> frames.py (one scene, one look per part and frame), drawn by cluster/,
machines.py, zookeeper.py and time/, with the words of captions.py and the colours of palette.css, rendered by
widget/player.py and svg.py. Pictures of single lessons belong to the course.
"""
