"""Measurements: against known right answers, against peers, and under kills."""
