"""Metrics: accuracy, intervals, comparisons of models, calibration, forgetting and others."""
