"""The web page that the engine serves at `/`.

It holds static files only and imports nothing; `kb.api.pages` serves them. What the page shows, it asks of the
REST API like any other client.
"""
