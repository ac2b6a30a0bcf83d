"""From a question to ranked passages with their citations.

It imports `core`, `embedding`, `store` and `index`. Start with `searcher.py`, which reads as one search from top to
bottom: question, filter scope, keyword leg, vector leg, pruning, fusion, ranking, hits, notice.
"""
