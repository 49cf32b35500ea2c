"""The fault bench: small trainings with known faults, and how well faults are found in their runs."""
