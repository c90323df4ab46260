# The image of kflare: one static program, the certificate authorities that it trusts, and the licences. No shell, no package manager.
#
# `make image` (hack/image) is how releases are made: it hands the files to the last stage as the context `files`, and needs no Docker.
# `docker buildx build --platform linux/amd64,linux/arm64 .` compiles them in the first stage, crosswise, with the same script.

FROM --platform=$BUILDPLATFORM docker.io/library/rust:1.95.0-bookworm AS files
RUN apt-get update && apt-get install --yes --no-install-recommends clang python3-pip
WORKDIR /kflare
COPY . .
ARG TARGETPLATFORM
RUN hack/image-files "$TARGETPLATFORM" /files

FROM scratch
LABEL org.opencontainers.image.title="kflare" \
      org.opencontainers.image.description="A Kubernetes operator that manages Cloudflare accounts declaratively" \
      org.opencontainers.image.source="https://github.com/kflare/kflare" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=files / /
USER 65532:65532
ENTRYPOINT ["/kflare"]
