"""Probes that put two facts together: property conjunction, encyclopedic composition."""
