"""An operator as users of Kopf write it: an index of the children by their owner, and a timer that counts them."""

import datetime

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_):
    settings.posting.enabled = False


@kopf.index("example.com", "v1", "parts")
def parts_by_owner(name, meta, status, **_):
    conditions = {entry["type"]: entry["status"] for entry in status.get("conditions", [])}
    ready = conditions.get("Ready") == "True"
    return {owner["uid"]: (name, ready) for owner in meta.get("ownerReferences", []) if owner["kind"] == "Widget"}


@kopf.timer("example.com", "v1", "widgets", interval=30)
def tell_parent(uid, status, patch, parts_by_owner: kopf.Index, **_):
    parts = dict(parts_by_owner.get(uid, []))
    ready = sum(parts.values())
    is_ready = ready == len(parts) > 0
    condition = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "reason": "PartsReady" if is_ready else "PartsNotReady",
        "message": f"{ready} of {len(parts)} parts are ready",
    }
    conditions = status.get("conditions", [])
    before = next((entry for entry in conditions if entry["type"] == "Ready"), {})
    if all(before.get(field) == value for field, value in condition.items()):
        return
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    same = before.get("status") == condition["status"]
    condition["lastTransitionTime"] = before.get("lastTransitionTime", now) if same else now
    others = [entry for entry in conditions if entry["type"] != "Ready"]
    patch.status["conditions"] = [*others, condition]
