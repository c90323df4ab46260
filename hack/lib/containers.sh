# Sourced by scripts that make or move images: buildah and skopeo with a storage and a policy of their own, and the means to look into
# an OCI layout and to run what is in it. Call `containers_in FOLDER` first.

containers_in() {
  CONTAINERS=$1
  printf '{"default": [{"type": "insecureAcceptAnything"}]}\n' >"$CONTAINERS/policy.json"
  # Nothing of the user's own settings counts, and no registry is guessed.
  printf 'unqualified-search-registries = []\n' >"$CONTAINERS/registries.conf"
  export CONTAINERS_REGISTRIES_CONF=$CONTAINERS/registries.conf
}

readonly CONTAINER_LIBRARIES=(libgpgme11 libassuan0 libgpg-error0 libdevmapper1.02.1 libseccomp2)

buildah() {
  local program policy=(--signature-policy "$CONTAINERS/policy.json") command=("$1")
  shift
  if [[ ${command[0]} == manifest ]]; then
    command+=("$1")
    shift
  fi
  program=$(hack/test-debian buildah buildah "${CONTAINER_LIBRARIES[@]}") || return 1
  "$program" --root "$CONTAINERS/storage" --runroot "$CONTAINERS/running" --storage-driver vfs "${command[@]}" "${policy[@]}" "$@"
}

skopeo() {
  local program
  program=$(hack/test-debian skopeo skopeo "${CONTAINER_LIBRARIES[@]}") || return 1
  "$program" --policy "$CONTAINERS/policy.json" "$@"
}

oci() { python3 hack/lib/oci.py "$@"; }

# can_run PLATFORM: whether this machine runs programs for it, as they are or with qemu.
can_run() { [[ $1 == "$(native_platform)" ]] || emulator "$1" >/dev/null; }

native_platform() {
  case $(uname -m) in
    x86_64) echo linux/amd64 ;;
    aarch64) echo linux/arm64 ;;
    *) echo none ;;
  esac
}

emulator() {
  case $1 in
    linux/amd64) hack/test-debian qemu-user-static qemu-x86_64-static ;;
    linux/arm64) hack/test-debian qemu-user-static qemu-aarch64-static ;;
    *) return 1 ;;
  esac
}

# run_in ROOT PLATFORM ARGUMENT...: runs the image's program with no environment but a token that nobody accepts; as its user, and with
# nothing but its files around it, where this machine lets us.
run_in() {
  local root=$1 platform=$2 start=(env -i CF_API_TOKEN=none)
  shift 2
  if [[ $platform != "$(native_platform)" ]]; then
    "${start[@]}" "$(emulator "$platform")" "$root/kflare" "$@"
  elif [[ $EUID -eq 0 ]]; then
    "${start[@]}" "$(type -P chroot)" --userspec=65532:65532 "$root" /kflare "$@"
  else
    "${start[@]}" "$root/kflare" "$@"
  fi
}
