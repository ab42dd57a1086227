"""What a background transport leaves to a foreground flow, and what it makes of the rest: one bottleneck, many cells.

python -m pathcast.lab.background --world sim --pairs 5 --controllers nice,lp --out DIR
"""
