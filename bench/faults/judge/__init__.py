"""How detectors are judged on the recorded runs: findings, baselines, scores, tables."""
