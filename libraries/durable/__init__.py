"""One way of surviving power cuts, for every library here that keeps files: calls.py.

It knows none of the libraries that use it, and nothing of what their files mean.
"""
