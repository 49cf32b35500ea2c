"""Helpers for analysis."""
