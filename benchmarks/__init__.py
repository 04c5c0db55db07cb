"""Benchmarks: kernelc beside its peers and beside hand-written C++, on the same work, checked against each other."""
