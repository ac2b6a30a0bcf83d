"""Where vectors with texts and tags can be kept and searched: kb and its rivals, one module each, behind one protocol.

Each module imports only what its own contestant brings, and has `open_store(corpus, folder)`.
"""
