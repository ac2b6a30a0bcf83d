"""Several engines on a primary and a synchronous standby: kill, freeze and cut off each of them while others write.

Every process has a network namespace of its own, as if it ran on a machine of its own.
"""
