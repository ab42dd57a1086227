"""Paths steered by OpenFlow 1.3: the switches' datapath, and the rules of a plan (Hamazaki, Abe, Kato)."""
