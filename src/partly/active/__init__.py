"""Asking people: the loop train -> ask -> answer, its simulation against a truth, and the queries that choose."""

from partly.active.loop import Loop, Measure, Plan, Round, Said

__all__ = ["Loop", "Measure", "Plan", "Round", "Said"]
