"""Learning the paths to one far end: rounds of probes and transfers into a model, and predictions out of it.

See docs/learn-and-predict.md.
"""
