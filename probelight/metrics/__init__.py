"""Accuracies, their intervals and comparisons, clusters, balance and the inoculation aggregate."""
