# The command in an image: docs/how-to/install.md says how it is called. What is compiled is compiled in the first stage.
FROM python:3.11-slim-bookworm AS build

# No versions here: a distribution's fixes are wanted, and what may not change is in the lock.
# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ libmariadb-dev pkg-config \
 && rm -rf /var/lib/apt/lists/*

ENV CMAKE_ARGS="-DGGML_NATIVE=OFF" PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/packhorse
WORKDIR /src

# Apart from the code, and before it: compiled anew where a version changes, and not where a line does.
COPY requirements.lock ./
RUN sed -n 's/ *\\$//; /^[a-z0-9].*==/p' requirements.lock > versions.txt \
 && /opt/packhorse/bin/pip install -q -c versions.txt llama-cpp-python mysqlclient

COPY . .
RUN /opt/packhorse/bin/pip install -q -c versions.txt ".[mysql]" \
 && /opt/packhorse/bin/pip uninstall -q -y pip \
 && /opt/packhorse/bin/migrate --version


FROM python:3.11-slim-bookworm

# hadolint ignore=DL3008
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgomp1 libmariadb3 libstdc++6 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 10001 --no-log-init --home-dir /jobs --create-home packhorse

COPY --from=build /opt/packhorse /opt/packhorse

# Jobs, lessons and models all lie in /jobs, whoever the user is: `--user` may name one that isn't known here.
ENV PATH=/opt/packhorse/bin:$PATH HOME=/jobs PACKHORSE_DATA_HOME=/jobs/data PYTHONDONTWRITEBYTECODE=1
USER 10001
WORKDIR /jobs
VOLUME /jobs
ENTRYPOINT ["migrate"]
