# The MCP server. It speaks HTTP to the engine and holds neither an inference runtime nor anything of the engine.
ARG BASE=python:3.11-slim-bookworm

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
COPY lock/mcp.txt lock/
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca_bundle,target=/etc/ssl/certs/ca-certificates.crt \
    python -m venv /opt/venv && /opt/venv/bin/pip install --quiet --require-hashes --no-deps -r lock/mcp.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
# What is not named here stays out: the engine, its store and its model.
COPY src/kb/__init__.py src/kb/
COPY src/kb/core src/kb/core
COPY src/kb/http src/kb/http
COPY src/kb/client src/kb/client
COPY src/kb/cli src/kb/cli
COPY src/kb/mcp src/kb/mcp
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca_bundle,target=/etc/ssl/certs/ca-certificates.crt \
    /opt/venv/bin/pip install --quiet --no-deps --no-build-isolation . \
    && /opt/venv/bin/pip uninstall --quiet --yes pip setuptools hatchling editables \
    && /opt/venv/bin/python -m compileall -q -j 0 /opt/venv/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="kb MCP server" \
      org.opencontainers.image.description="Gives agents access to a kb engine over the Model Context Protocol" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    KB_MCP_HOST=0.0.0.0 \
    KB_MCP_PORT=3000 \
    KB_ENGINE_URL=http://engine:8000 \
    KB_LOG_FORMAT=json
USER 10001:10001
EXPOSE 3000
HEALTHCHECK --interval=5s --timeout=3s --start-period=15s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"KB_MCP_PORT\"]}/health', timeout=2)"]
ENTRYPOINT ["kb"]
CMD ["mcp"]
