"""Congestion controllers in the kernel, held and pinned, and programs that run under them."""
