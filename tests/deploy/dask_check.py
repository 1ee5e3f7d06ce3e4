#!/usr/bin/env python3
"""Checks examples/dask.yaml of the Helm chart, and what docs/dask.md says of it.

Pods and the service fit the schemas of Kubernetes; the service finds the scheduler of this cluster;
the workers' secret is mounted where the page reads it; the page's names are those that the chart
renders. The operator's own schema is in no package that the checks have. Exits with 1 and a sentence
for each difference.

    .venv/bin/python tests/deploy/dask_check.py
"""

import json
import sys

import chart
import chart_check
import yaml

EXAMPLE = chart.CHART / "examples/dask.yaml"
PAGE = chart.ROOT / "docs/dask.md"


def problems(cluster, page, objects):
    name, spec = cluster["metadata"]["name"], cluster["spec"]
    metadata = {"name": name, "namespace": cluster["metadata"]["namespace"]}
    pods = {role: spec[role]["spec"] for role in ("worker", "scheduler")}
    for role, pod in pods.items():
        fault = chart_check.schema_fault(json.dumps(
            {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}))  # fmt: skip
        if fault:
            yield f"{role}: {fault}"
    service = spec["scheduler"]["service"]
    fault = chart_check.schema_fault(json.dumps(
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service}))  # fmt: skip
    if fault:
        yield f"service: {fault}"
    wanted = {"dask.org/cluster-name": name, "dask.org/component": "scheduler"}
    if service["selector"] != wanted:
        yield f"service: selects {service['selector']}, and the operator's labels are {wanted}"
    ports = {port["name"] for port in pods["scheduler"]["containers"][0]["ports"]}
    for port in service["ports"]:
        if port["targetPort"] not in ports:
            yield f"service: no port {port['targetPort']} of the scheduler"
    images = {pod["containers"][0]["image"] for pod in pods.values()}
    if len(images) != 1:
        yield f"scheduler and workers have different images: {images}"
    [mount] = pods["worker"]["containers"][0]["volumeMounts"]
    for file in ("ca.crt", "token"):
        if f"{mount['mountPath']}/{file}" not in page:
            yield f"{PAGE.name}: reads no {mount['mountPath']}/{file}"
    for rendered in chart.of_kind(objects, "Service"):
        host = f"{rendered['metadata']['name']}.{metadata['namespace']}.svc"
        if f'"{host}"' not in page:
            yield f"{PAGE.name}: does not name {host}"
    if f"{name}-scheduler" not in page:
        yield f"{PAGE.name}: does not name the service {name}-scheduler"


def main():
    cluster = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    with chart.load() as loaded:
        objects = chart.render(loaded, {})
    found = list(problems(cluster, PAGE.read_text(encoding="utf-8"), objects))
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
