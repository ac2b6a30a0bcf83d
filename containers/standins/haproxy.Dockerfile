# Stands in for the image haproxy:3.0 where no registry can be reached: Debian's HAProxy, with the same user and path.
FROM python:3.11-slim-bookworm
RUN apt-get update -q && apt-get install -qy --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/* \
    && mkdir -p /usr/local/etc/haproxy
USER haproxy
STOPSIGNAL SIGUSR1
ENTRYPOINT ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
