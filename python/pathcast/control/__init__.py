"""The congestion controllers from Python: those in the kernel, their floating-point oracles, the document of all."""
