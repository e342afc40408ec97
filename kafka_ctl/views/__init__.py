"""Pictures of a trace: players for the notebook, animated SVG, pages, diagrams.

    from kafka_ctl.views.widget.player import player   a widget that steps, rewinds, jumps and plays
    from kafka_ctl.views.widget.live import Live       a lab to be clicked; `lab` in a notebook shows it
    from kafka_ctl.views.explain.why import why        the rule behind a record, with the lines that ran
    from kafka_ctl.views.export import export          the same as .svg, .html, .png or .gif
    from kafka_ctl.views.digraph import digraph        tables, elections and clusters as graphs to go on with

records -> steps.py (what is one thing happening) -> frames.py (one scene, one look per part and frame), drawn by
cluster.py, machines.py, zookeeper.py, spacetime.py, and rendered by widget/player.py, animated.py, static_svg.py.
Pictures that only lessons use are in figures/.
"""
