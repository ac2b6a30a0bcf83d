# The engine with its model on AMD cards. ROCm's libraries come with the base image, the driver from the host.
# Not run by its authors yet: they had no such card.
ARG BASE=rocm/dev-ubuntu-24.04:7.0-complete

FROM ${BASE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends python3 python3-venv && rm -rf /var/lib/apt/lists/*
COPY lock/rocm.txt lock/
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca_bundle,target=/etc/ssl/certs/ca-certificates.crt \
    python3 -m venv /opt/venv && /opt/venv/bin/pip install --quiet --require-hashes --no-deps -r lock/rocm.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY src src
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca_bundle,target=/etc/ssl/certs/ca-certificates.crt \
    /opt/venv/bin/pip install --quiet --no-deps --no-build-isolation . \
    && /opt/venv/bin/python -m kb.embedding.model install \
    && /opt/venv/bin/python -m kb.embedding.model install potion-multilingual \
    && /opt/venv/bin/pip uninstall --quiet --yes pip setuptools hatchling editables ziglang \
    && /opt/venv/bin/python -m compileall -q -j 0 -x 'olefile2[.]py' /opt/venv/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="kb engine, ROCm" \
      org.opencontainers.image.description="A private knowledge base: REST API and background worker, model included" \
      org.opencontainers.image.licenses="Apache-2.0"
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends python3 && rm -rf /var/lib/apt/lists/*
RUN mkdir --mode=0700 /data && chown 10001:10001 /data
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH \
    KB_HOST=0.0.0.0 \
    KB_PORT=8000 \
    KB_DATA_DIR=/data \
    KB_LOG_FORMAT=json
USER 10001:10001
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"KB_PORT\"]}/health', timeout=2)"]
ENTRYPOINT ["kb"]
CMD ["serve"]
