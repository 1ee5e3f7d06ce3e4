"""Renders the Helm chart of deploy/helm/gemmd, as `helm template` does, for the checks beside it.

Needs helm-python-sdk and PyYAML: run by .venv/bin/python (scripts/install-deps.sh lint).
"""

import copy
import itertools
import pathlib
import typing

import helm_python
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/gemmd"
RELEASE = "gemmd"
NAMESPACE = "prod"

# What the servers ask of their callers.
IDENTITIES = {
    "tls": {},
    "mutual-tls": {"tls": {"clientCa": "ca.crt"}},
    "certificates-or-tokens": {"tls": {"clientCa": "ca.crt", "clientCertificates": "optional"}},
    "quotas": {"callers": {"quotas": "quotas"}},
    "plaintext": {"tls": {"secret": ""}, "insecure": "plaintext"},
    "anonymous": {"callers": {"secret": ""}, "insecure": "anonymous"},
    "insecure": {"tls": {"secret": ""}, "callers": {"secret": ""}, "insecure": "all"},
}
# What is there beside the servers.
EXTENTS = {
    "usual": {},
    "bare": {"podDisruptionBudget": {"enabled": False}, "networkPolicy": {"enabled": False}},
    "whole": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboard": {"enabled": True},
        "autoscaling": {"enabled": True},
        "test": {"secret": "gemmd-test"},
    },
}
# The rest, a subject each.
SINGLE = {
    "image": {"image": {"repository": "registry.example:5000/gemm/gemmd", "tag": "v1-gpu",
                        "pullPolicy": "Always", "pullSecrets": [{"name": "registry"}]}},
    "digest": {"image": {"digest": "sha256:" + "0a" * 32}},
    "slices": {"gpus": 2, "gpuResource": "nvidia.com/mig-1g.10gb"},
    "replicas": {"replicas": 3, "maxSurge": 2, "minReadySeconds": 45,
                 "podDisruptionBudget": {"maxUnavailable": "50%"}},
    "scaled-by-others": {"replicas": None},
    "drain": {"drain": {"preStopSeconds": 20, "delaySeconds": 60, "timeoutSeconds": 3600},
              "startupSeconds": 601},
    "extras": {
        "extraArgs": ["--max-queue-wait=2s", "--tuning-tables=/tuning/a.tune"],
        "extraEnv": [{"name": "OPENBLAS_NUM_THREADS", "value": "4"}],
        "extraVolumes": [{"name": "tuning", "configMap": {"name": "tuning"}}],
        "extraVolumeMounts": [{"name": "tuning", "mountPath": "/tuning", "readOnly": True}],
        "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 8}},
    },
    "only-extra-volumes": {
        **IDENTITIES["insecure"],
        "extraVolumes": [{"name": "tuning", "configMap": {"name": "tuning"}}],
        "extraVolumeMounts": [{"name": "tuning", "mountPath": "/tuning"}],
    },
    "placement": {
        "podLabels": {"team": "a"}, "podAnnotations": {"sidecar.istio.io/inject": "false"},
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}},
        "topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "gemmd"}}}],
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high", "runtimeClassName": "nvidia",
    },
    "service": {"service": {"type": "LoadBalancer", "port": 443, "annotations": {"a": "b"}},
                "test": {"secret": "gemmd-test"}},
    "peers": {"networkPolicy": {"clients": [{"namespaceSelector": {}}],
                                "scrapers": [{"podSelector": {"matchLabels": {"app": "prometheus"}}}]}},
    "operator": {
        "serviceMonitor": {"enabled": True, "interval": "30s", "tokenSecret": "scraper"},
        "prometheusRule": {"enabled": True, "runbookBaseUrl": "https://git.example.com/gemmd/"},
        "dashboard": {"enabled": True, "labels": {"grafana": "yes"}, "annotations": {"folder": "gemm"}},
    },
    "scaling": {"autoscaling": {"enabled": True, "minReplicas": 2, "maxReplicas": 16,
                                "queueMilliseconds": 60000, "scaleDownSeconds": 60}},
    "numeric-names": {"tls": {"secret": "1"}, "callers": {"secret": "2"}, "test": {"secret": "3"}},
}


class Case(typing.NamedTuple):
    """The chart with some values."""

    name: str
    values: dict  # given by a user
    merged: dict  # with the chart's defaults
    objects: list


def merge(below, above):
    """`above` over `below`, as Helm merges files of values."""
    merged = copy.deepcopy(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = merge(merged[key], value) if both else copy.deepcopy(value)
    return merged


def read_values(name):
    return yaml.safe_load((CHART / name).read_text(encoding="utf-8"))


def combinations():
    """(name, values) of everything that renders differently."""
    devices = {"cuda": {}, "host": read_values("values-host.yaml")}
    for device, identity, extent in itertools.product(devices, IDENTITIES, EXTENTS):
        yield (f"{device}, {identity}, {extent}",
               merge(devices[device], merge(IDENTITIES[identity], EXTENTS[extent])))
    yield from SINGLE.items()


def render(chart, values, release=RELEASE):
    """The objects, in no order that matters; errors are those of Helm."""
    texts = chart.render(values, name=release, namespace=NAMESPACE, is_install=True)
    documents = (yaml.load_all(text, yaml.CSafeLoader) for path, text in texts.items() if path.endswith(".yaml"))
    return [document for documents_of_file in documents for document in documents_of_file if document]


def load():
    return helm_python.Chart.load(CHART)


def cases():
    """Every case, rendered."""
    with load() as chart:
        return [Case(name, values, chart.merge_values(values), render(chart, values))
                for name, values in combinations()]


def of_kind(objects, kind):
    return [each for each in objects if each["kind"] == kind]


def deployment(objects):
    """The only one."""
    [found] = of_kind(objects, "Deployment")
    return found


def container(pod_spec):
    """The only one."""
    [found] = pod_spec["containers"]
    return found
