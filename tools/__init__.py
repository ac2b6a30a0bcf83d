"""Programs for those who work on kb: reference pages, the ONNX graph, conformance."""
