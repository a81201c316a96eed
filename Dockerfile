# The image of `weir` for people who have Docker; `cargo xtask image` makes the like of it without.
# No shell, not root, and nothing in it needs to be written to: run it with `--read-only`.

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --release --locked --package weir \
    && cp target/release/weir /weir

# glibc, libgcc, certificates and a user called nonroot (65532); that is all.
FROM gcr.io/distroless/cc-debian12:nonroot
COPY --from=build /weir /weir
USER 65532:65532
ENTRYPOINT ["/weir"]
