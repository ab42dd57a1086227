"""The congestion controllers from Python: floating-point oracles, their comparison with the C headers, the document."""
