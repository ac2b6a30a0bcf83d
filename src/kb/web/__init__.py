"""The web page that the engine serves at `/`.

It holds static files only and imports nothing; `kb.api.pages` serves them. What the page shows, it asks of the
REST API like any other client. Start with `app/main.js`; a view is a file in `app/views`, what several views share is
in `app/parts`.
"""
