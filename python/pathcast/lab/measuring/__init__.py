"""How good `measure` is: the same cases in the simulator and over emulated links, judged by what the links carried.

`python -m pathcast.lab.measuring bars --world sim|emu` prints the bars; PathTester's tables are
an experiment (experiments/pathtester).
"""
