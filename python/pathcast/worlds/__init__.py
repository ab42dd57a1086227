"""Worlds: where a verb is carried out. The verbs and their result types are the same in every world.

`sim` is a simulated network with simulated TCP, `emu` an emulated network with the real kernel, `host` the user's own
network.
"""
