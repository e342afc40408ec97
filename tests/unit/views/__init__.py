"""Pictures: captions, diagrams, digraphs and dot, frames, marks, the palette, export, leaderless partitions."""
