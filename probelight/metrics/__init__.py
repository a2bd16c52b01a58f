"""What counts: accuracies, their intervals, clusters, balance and the inoculation aggregate."""
