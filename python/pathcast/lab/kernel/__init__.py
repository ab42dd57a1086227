"""Experiments with the controllers in the real kernel, over emulated networks.

python -m pathcast.lab.kernel.coupling --out out/coupling     LIA's share, and where GSAM's smooth transition begins
python -m pathcast.lab.kernel.inline --out out/inline         ImTCP's available bandwidth beside the truth
python -m pathcast.lab.kernel.beside --out out/beside         the simulator beside the kernel, flow by flow
"""
