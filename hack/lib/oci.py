"""An OCI layout with one index of images, read.

    oci.py digest LAYOUT                    the digest of the index
    oci.py digest LAYOUT PLATFORM           that of the image for a platform
    oci.py size LAYOUT PLATFORM             what a node pulls, in bytes
    oci.py unpack LAYOUT PLATFORM FOLDER    the image's files
"""

import hashlib
import json
import pathlib
import sys
import tarfile


class Layout:
    """The blobs of a layout, each checked against its digest."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (entry,) = json.loads((self.folder / "index.json").read_bytes())["manifests"]
        self.digest = entry["digest"]
        self.index = self.read(self.digest)

    def blob(self, digest):
        algorithm, name = digest.split(":")
        path = self.folder / "blobs" / algorithm / name
        if hashlib.new(algorithm, path.read_bytes()).hexdigest() != name:
            sys.exit(f"oci: {path} is not what its name says")
        return path

    def read(self, digest):
        return json.loads(self.blob(digest).read_bytes())

    def image(self, platform):
        """The entry of the index for a platform."""
        found = [
            it for it in self.index["manifests"] if f"{it['platform']['os']}/{it['platform']['architecture']}" == platform
        ]
        if len(found) != 1:
            sys.exit(f"oci: {len(found)} images for {platform}")
        return found[0]


def main(command, folder, *arguments):
    layout = Layout(folder)
    if command == "digest":
        print(layout.image(*arguments)["digest"] if arguments else layout.digest)
        return
    entry = layout.image(arguments[0])
    manifest = layout.read(entry["digest"])
    if command == "size":
        print(entry["size"] + manifest["config"]["size"] + sum(layer["size"] for layer in manifest["layers"]))
    elif command == "unpack":
        for layer in manifest["layers"]:
            with tarfile.open(layout.blob(layer["digest"])) as files:
                files.extractall(arguments[1], filter="tar")
    else:
        sys.exit(f"oci: no such command: {command}")


main(*sys.argv[1:])
