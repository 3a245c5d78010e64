"""Images: from untrusted bytes to pixels of one size, decoded in worker processes.

This package does not import torch, so that a worker starts quickly and stays small.
"""
