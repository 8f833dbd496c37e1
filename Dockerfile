# syntax=docker/dockerfile:1
# One program in one image: `ebb serve FUNCTION` is each function, `ebb migrate` the migration, and `ebb` the command line.
#
#   docker build --tag ebbflow .                            the functions: no shell, no root, no package manager
#   docker build --tag ebbflow-worker --target worker .     for queues whose tasks are bash or python

FROM rust:1.95.0-bookworm AS chef
RUN cargo install cargo-chef --locked --version ^0.1 \
    && cargo install cargo-cyclonedx --locked --version ^0.5
WORKDIR /src

# Dependencies depend only on the manifests, so they are rebuilt only when those change.
FROM chef AS plan
COPY . .
RUN cargo chef prepare --recipe-path recipe.json

FROM chef AS build
COPY --from=plan /src/recipe.json recipe.json
RUN cargo chef cook --release --locked --package ebb --no-default-features --recipe-path recipe.json
COPY . .
# Without the default feature, no Postgres is compiled in.
RUN cargo build --release --locked --package ebb --no-default-features
# The software bill of materials: every crate in the program, with its version and licence. One that cannot be read or misses
# what is surely in the program fails the build.
RUN cargo cyclonedx --manifest-path cli/Cargo.toml --no-default-features --format json \
    && python3 -c 'import json, sys; names = {part["name"] for part in json.load(open("cli/ebb.cdx.json"))["components"]}; sys.exit(not {"tokio", "sqlx", "axum"} <= names)' \
    && install -D --mode 644 cli/ebb.cdx.json /worker/usr/local/share/ebb/sbom.cdx.json \
    && install -D target/release/ebb /worker/usr/local/bin/ebb
RUN deploy/image/assemble target/release/ebb cli/ebb.cdx.json /image

FROM debian:bookworm-slim AS worker
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bash ca-certificates python3 python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 65532 --create-home nonroot
COPY --from=build /worker /
USER 65532:65532
WORKDIR /home/nonroot
ENTRYPOINT ["/usr/local/bin/ebb"]

FROM scratch AS ebbflow
COPY --from=build /image /
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["/usr/local/bin/ebb"]
