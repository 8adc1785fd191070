"""An operator in Kopf that says nothing of readiness: it creates children, adopts them, and is done.

A Shop becomes a Deployment, a Job that sets it up, and a Store. A Store becomes a StatefulSet.
Run it with `kopf run shop_operator.py -A`.
"""

import functools
import os

import kopf
import pykube

import rollcall_kopf

GROUP, VERSION = "shop.example.com", "v1"
PAUSE = float(os.environ.get("SHOP_RETRY_SECONDS", "15"))


@kopf.on.startup()
def configure(settings, **_):
    # A handler that fails for good leaves the same mark as one that succeeded: this keeps them apart.
    rollcall_kopf.keep_outcomes(settings)


@functools.cache
def api():
    return pykube.HTTPClient(pykube.KubeConfig.from_env())


@functools.cache
def kind(api_version, name):
    return pykube.object_factory(api(), api_version, name)


def apply(child):
    """Creates the child as the owner's, or brings the one that is there up to date."""
    # Also copies the owner's labels, down to the pods.
    kopf.adopt(child, nested=["spec.template"])
    there = kind(child["apiVersion"], child["kind"])(api(), child)
    if not there.exists():
        there.create()
    elif child["kind"] != "Job":  # A Job has run, or is running: it is not changed any more.
        there.patch({"spec": child["spec"]})


def template(name, command, restart="Always"):
    container = {"name": "main", "image": "busybox:1.37", "command": ["sh", "-c", command]}
    return {
        "metadata": {"labels": {"app": name}},
        "spec": {"restartPolicy": restart, "containers": [container]},
    }


@kopf.on.create(GROUP, VERSION, "shops")
@kopf.on.update(GROUP, VERSION, "shops")
def open_shop(meta, name, namespace, spec, reason, logger, **_):
    logger.info("handling %s of Shop %s, generation %s", reason, name, meta["generation"])
    settings = spec.get("settings")
    if settings and not kind("v1", "ConfigMap").objects(api(), namespace).get_or_none(name=settings):
        raise kopf.TemporaryError(f"ConfigMap {settings} does not exist yet", delay=PAUSE)
    web = f"{name}-web"
    apply({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": web},
        "spec": {
            "replicas": spec["replicas"],
            "selector": {"matchLabels": {"app": web}},
            "template": template(web, "httpd -f -p 8080"),
        },
    })
    apply({
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Store",
        "metadata": {"name": f"{name}-store"},
        "spec": {"replicas": spec["replicas"]},
    })
    apply({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"{name}-setup"},
        "spec": {"backoffLimit": 0, "template": template(f"{name}-setup", "true", restart="Never")},
    })


@kopf.on.create(GROUP, VERSION, "stores")
@kopf.on.update(GROUP, VERSION, "stores")
def open_store(meta, name, spec, reason, logger, **_):
    logger.info("handling %s of Store %s, generation %s", reason, name, meta["generation"])
    apply({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": spec["replicas"],
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": name}},
            "template": template(name, "sleep infinity"),
        },
    })


@kopf.on.delete(GROUP, VERSION, "shops")
def close_shop(name, logger, **_):
    # A handler like this makes Kopf put a finalizer on every Shop. The children go with their owner.
    logger.info("handling delete of Shop %s", name)
