"""Speed and quality, each figure beside its goal, rivals measured in the same run.

`python -m benchmarks` is about speed, `python -m benchmarks.quality` about what is found. Nothing here is imported
by kb.
"""
