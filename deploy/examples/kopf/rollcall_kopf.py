"""Keeps how Kopf's handlers ended where Rollcall reads it.

Kopf stores its mark of what was handled when the handlers of a change are through, whether they succeeded or failed for
good, and removes their records in the same patch. Nothing on the object tells the two apart, so Rollcall cannot either.
With this module a failure stays to be seen until the next change is handled:

    import kopf, rollcall_kopf

    @kopf.on.startup()
    def configure(settings, **_):
        rollcall_kopf.keep_outcomes(settings)

It writes one annotation, `<prefix>/last-outcome`, in the patch that Kopf sends anyway: no request and no event more. It is
JSON, `{"generation": 2, "failed": {"open_shop": "no such image"}, "succeeded": ["close_shop"]}`. Kopf leaves annotations
below its own prefix out of what it compares, so no handler is called for it. A storage of your own for progress has to be
set before; where its prefix is not Kopf's, give the same one here.
"""

import json

import kopf

__all__ = ["keep_outcomes", "OutcomeStorage"]

#: Name of the annotation below the prefix.
KEY = "last-outcome"
#: Longest message of a handler that is kept, in characters.
LONGEST_MESSAGE = 500
#: Causes whose handlers are counted: what is resumed or deleted is no change of the spec.
CHANGES = ("create", "update")


def keep_outcomes(settings, prefix="kopf.zalando.org"):
    """Wraps the progress storage of these settings. Call it in a startup handler, after any storage of your own is set."""
    storage = settings.persistence.progress_storage
    if not isinstance(storage, OutcomeStorage):
        settings.persistence.progress_storage = OutcomeStorage(storage, prefix)


class OutcomeStorage(kopf.ProgressStorage):
    """A progress storage around another one, which keeps in one more annotation how handlers ended."""

    def __init__(self, storage, prefix="kopf.zalando.org"):
        super().__init__()
        self.storage = storage
        self.annotation = f"{prefix}/{KEY}"

    def fetch(self, *, key, body):
        return self.storage.fetch(key=key, body=body)

    def store(self, *, key, record, body, patch):
        self.storage.store(key=key, record=record, body=body, patch=patch)
        if record.get("purpose") not in CHANGES:
            return
        generation = body.get("metadata", {}).get("generation")
        kept = self._kept(generation, body, patch)
        succeeded, failed = set(kept["succeeded"]), dict(kept["failed"])
        # One that is tried again has not ended, however it ended before.
        succeeded.discard(key)
        failed.pop(key, None)
        if record.get("success"):
            succeeded.add(key)
        elif record.get("failure"):
            failed[key] = str(record.get("message") or "")[:LONGEST_MESSAGE]
        now = {"generation": generation, "failed": failed, "succeeded": sorted(succeeded)}
        if now != kept and (failed or succeeded or kept["failed"] or kept["succeeded"]):
            annotations = patch.setdefault("metadata", {}).setdefault("annotations", {})
            annotations[self.annotation] = json.dumps(now, separators=(",", ":"), sort_keys=True)

    def purge(self, *, key, body, patch):
        self.storage.purge(key=key, body=body, patch=patch)

    def touch(self, *, body, patch, value):
        self.storage.touch(body=body, patch=patch, value=value)

    def clear(self, *, essence):
        essence = self.storage.clear(essence=essence)
        annotations = essence.get("metadata", {}).get("annotations", {})
        annotations.pop(self.annotation, None)
        return essence

    def flush(self):
        self.storage.flush()

    def _kept(self, generation, body, patch):
        """What is kept of this generation so far: in this patch already, or on the object."""
        for source in (patch, body):
            text = ((source.get("metadata") or {}).get("annotations") or {}).get(self.annotation)
            try:
                kept = json.loads(text)
                if kept["generation"] == generation:
                    return {"generation": generation, "failed": dict(kept["failed"]),
                            "succeeded": sorted(kept["succeeded"])}
            except (KeyError, TypeError, ValueError):
                pass  # None of ours, or none at all.
        return {"generation": generation, "failed": {}, "succeeded": []}
