"""A folder in the layout of the OCI image specification, written without a daemon."""
import hashlib
import json

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def as_json(value):
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


class OciLayout:
    """Blobs by their digest, and an index that names what is inside."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "blobs/sha256").mkdir(parents=True, exist_ok=True)
        (folder / "oci-layout").write_bytes(as_json({"imageLayoutVersion": "1.0.0"}))

    def add_blob(self, content, media_type):
        """Writes a blob; returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / "blobs/sha256" / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def add_manifest(self, config, layers, annotations):
        """Writes a manifest of these descriptors; returns its descriptor."""
        manifest = {
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers, "annotations": annotations,
        }
        return self.add_blob(as_json(manifest), MANIFEST)

    def add_index(self, manifests, annotations):
        """Writes an index of these descriptors; returns its descriptor."""
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests, "annotations": annotations}
        return self.add_blob(as_json(index), INDEX)

    def name(self, descriptor, reference):
        """Names one descriptor as what the layout holds."""
        named = {**descriptor, "annotations": {"org.opencontainers.image.ref.name": reference}}
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [named]}
        (self.folder / "index.json").write_bytes(as_json(index))
