"""Prints the directory of the interface in WIT, which ``componentize-py -d`` needs."""

from pathlib import Path

print(Path(__file__).with_name("wit"))
