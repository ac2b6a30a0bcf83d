"""`kb connect` and `kb bridge`: agents' configuration files, and a small MCP client that proves them."""
