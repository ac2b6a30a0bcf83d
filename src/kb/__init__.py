"""kb: a private knowledge base that people and AI agents share."""

import sys

# The version of engine, client and MCP server alike: the one place that states it.
__version__ = "3.0.0"

# `import openvino` reports itself to an analytics service, from a fork of the whole process. Where this package is
# missing, OpenVINO reports nothing; None makes its import fail even where it is installed.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
