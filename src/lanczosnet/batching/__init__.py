"""Graphs as layers see them: sparse, or in padded blocks."""
