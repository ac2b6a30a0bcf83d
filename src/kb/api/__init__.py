"""The REST API: one file per noun, one error shape, one guard in front."""
