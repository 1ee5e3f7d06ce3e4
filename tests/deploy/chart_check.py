#!/usr/bin/env python3
"""Checks what the Helm chart renders, for every combination of values that differs.

Each object fits its schema, of the oldest Kubernetes that Chart.yaml allows and of the newest that
kubernetes-validate knows; selectors, ports, names and secrets fit each other; pods are as locked
down as they can be. Exits with 1 and a sentence for each difference.

    .venv/bin/python tests/deploy/chart_check.py
"""

import functools
import json
import re
import sys

import chart
import helm_python
import jsonschema
import kubernetes_validate

# Which of the API's fields the chart uses, and their types: these kinds are in no schema of
# Kubernetes. An API server drops what it does not know without a word.
LABELS = {"type": "object", "additionalProperties": {"type": "string"}}


def fields(required=(), **properties):
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": [*required]}


METADATA = fields(["name", "namespace", "labels"],
                  name={"type": "string"}, namespace={"type": "string"}, labels=LABELS)
CUSTOM = {
    "monitoring.coreos.com/v1 ServiceMonitor": fields(
        ["selector", "endpoints"],
        jobLabel={"type": "string"},
        selector=fields(matchLabels=LABELS),
        endpoints={"type": "array", "minItems": 1, "items": fields(
            port={"type": "string"}, interval={"type": "string"},
            authorization=fields(credentials=fields(
                ["key"], name={"type": "string"}, key={"type": "string"})))}),
    "monitoring.coreos.com/v1 PrometheusRule": fields(
        groups={"type": "array", "items": fields(
            ["name"], name={"type": "string"},
            rules={"type": "array", "items": fields(
                ["expr"], alert={"type": "string"}, expr={"type": "string"},
                labels=LABELS, annotations=LABELS, **{"for": {"type": "string"}})})}),
}
# What an image of deploy/docker listens at, unless told otherwise.
DOCKERFILE = (chart.ROOT / "deploy/docker/Dockerfile").read_text(encoding="utf-8")
REFERENCE = (chart.ROOT / "docs/reference.md").read_text(encoding="utf-8")


def api_versions():
    oldest = re.search(r">=(\d+\.\d+)", (chart.CHART / "Chart.yaml").read_text(encoding="utf-8"))[1]
    return oldest, kubernetes_validate.latest_version()


@functools.cache
def schema_fault(text):
    """What an API server would not take of an object, or drop; None for nothing."""
    each = json.loads(text)
    custom = CUSTOM.get(f"{each['apiVersion']} {each['kind']}")
    try:
        if custom:
            jsonschema.validate(each, fields(["metadata", "spec"], apiVersion={}, kind={},
                                             metadata=METADATA, spec=custom))
            return None
        for version in api_versions():
            kubernetes_validate.validate(each, version, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"
    return None


def pods(objects):
    """(name, metadata, spec) of every pod."""
    for each in objects:
        if each["kind"] == "Deployment":
            yield each["metadata"]["name"], each["spec"]["template"]["metadata"], each["spec"]["template"]["spec"]
        elif each["kind"] == "Pod":
            yield each["metadata"]["name"], each["metadata"], each["spec"]


def check_schemas(case):
    for each in case.objects:
        fault = schema_fault(json.dumps(each))
        if fault:
            yield f"{each['kind']} {each['metadata']['name']}: {fault}"


def check_objects(case):
    names = [(each["kind"], each["metadata"]["name"]) for each in case.objects]
    for each in case.objects:
        if each["metadata"].get("namespace") != chart.NAMESPACE:
            yield f"{each['kind']}: is not in the release's namespace"
        if each["metadata"]["labels"].get("app.kubernetes.io/instance") != chart.RELEASE:
            yield f"{each['kind']}: has not the release's label"
        if names.count((each["kind"], each["metadata"]["name"])) != 1:
            yield f"{each['kind']}: two have the name {each['metadata']['name']}"
    wanted = {kind for kind, there in {
        "Deployment": True, "Service": True,
        "PodDisruptionBudget": case.merged["podDisruptionBudget"]["enabled"],
        "NetworkPolicy": case.merged["networkPolicy"]["enabled"],
        "ServiceMonitor": case.merged["serviceMonitor"]["enabled"],
        "PrometheusRule": case.merged["prometheusRule"]["enabled"],
        "ConfigMap": case.merged["dashboard"]["enabled"],
        "HorizontalPodAutoscaler": case.merged["autoscaling"]["enabled"],
        "Pod": case.merged["test"]["secret"] or case.merged["insecure"] == "all",
    }.items() if there}
    if wanted != {kind for kind, _ in names}:
        yield f"has {sorted({kind for kind, _ in names})}, wanted are {sorted(wanted)}"


def check_security(case):
    for name, _, spec in pods(case.objects):
        container = chart.container(spec)
        wanted = {"runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001,
                  "seccompProfile": {"type": "RuntimeDefault"}}
        if spec["securityContext"] != wanted:
            yield f"{name}: the pod's securityContext is {spec['securityContext']}"
        wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                  "capabilities": {"drop": ["ALL"]}}
        if container["securityContext"] != wanted:
            yield f"{name}: the container's securityContext is {container['securityContext']}"
        if spec["automountServiceAccountToken"]:
            yield f"{name}: gets a token of the API server"
        shared = {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & set(spec)
        if shared:
            yield f"{name}: shares {sorted(shared)}"
        if not re.search(r"(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})$", container["image"]):
            yield f"{name}: the image {container['image']} may be any"
    user = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    if user.groups() != ("10001", "10001"):
        yield f"the image's user is {user[0]}"


def check_resources(case):
    resources = chart.container(chart.deployment(case.objects)["spec"]["template"]["spec"])["resources"]
    if resources["requests"]["memory"] != resources["limits"]["memory"]:
        yield f"asks for {resources['requests']['memory']} of memory, of at most {resources['limits']['memory']}"
    gpus = {name: count for name, count in resources["limits"].items() if "/" in name}
    cuda = case.merged["device"] == "cuda"
    if gpus != ({case.merged["gpuResource"]: case.merged["gpus"]} if cuda else {}):
        yield f"device {case.merged['device']} has the GPUs {gpus}"


def check_ports(case):
    container = chart.container(chart.deployment(case.objects)["spec"]["template"]["spec"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for name, variable in ("grpc", "GEMMD_ADDRESS"), ("metrics", "GEMMD_METRICS_ADDRESS"):
        listens = set(re.findall(rf"{variable}=0\.0\.0\.0:(\d+)", DOCKERFILE))
        if listens != {str(ports[name])}:
            yield f"the port {name} is {ports[name]}; the images listen at {listens}"
    for probe, path in ("startup", "/readyz"), ("readiness", "/readyz"), ("liveness", "/livez"):
        if container[f"{probe}Probe"]["httpGet"] != {"path": path, "port": "metrics"}:
            yield f"the {probe} probe asks for {container[f'{probe}Probe']['httpGet']}"
    for service in chart.of_kind(case.objects, "Service"):
        for port in service["spec"]["ports"]:
            if port["targetPort"] not in ports:
                yield f"Service {service['metadata']['name']}: the pods have no port {port['targetPort']}"
    for policy in chart.of_kind(case.objects, "NetworkPolicy"):
        let_in = [port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]]
        if let_in != ["grpc", "metrics"]:
            yield f"NetworkPolicy: lets {let_in} in"
        if not all(rule.get("from") for rule in policy["spec"]["ingress"]):
            yield "NetworkPolicy: lets everybody in"


def check_selectors(case):
    server = chart.deployment(case.objects)
    labels = server["spec"]["template"]["metadata"]["labels"]
    selectors = {"Deployment": server["spec"]["selector"]["matchLabels"]}
    for service in chart.of_kind(case.objects, "Service"):
        selectors[f"Service {service['metadata']['name']}"] = service["spec"]["selector"]
    for budget in chart.of_kind(case.objects, "PodDisruptionBudget"):
        selectors["PodDisruptionBudget"] = budget["spec"]["selector"]["matchLabels"]
    for policy in chart.of_kind(case.objects, "NetworkPolicy"):
        selectors["NetworkPolicy"] = policy["spec"]["podSelector"]["matchLabels"]
    for name, selector in selectors.items():
        if not selector or not selector.items() <= labels.items():
            yield f"{name}: selects {selector}, the pods have {labels}"
        for pod in chart.of_kind(case.objects, "Pod"):
            if selector.items() <= pod["metadata"]["labels"].items():
                yield f"{name}: selects the pod of the test, too"


def check_rollout(case):
    server = chart.deployment(case.objects)
    update = server["spec"]["strategy"]["rollingUpdate"]
    if (update["maxSurge"] == 0) != (update["maxUnavailable"] == 1):
        yield f"a new version rolls out with {update}"
    # A version in the labels would start every pod anew for a change of the chart alone.
    if set(server["spec"]["template"]["metadata"]["labels"]) - set(case.merged["podLabels"]) != set(
            server["spec"]["selector"]["matchLabels"]):
        yield "the pods have labels that nothing selects by"
    scalers = chart.of_kind(case.objects, "HorizontalPodAutoscaler")
    if ("replicas" in server["spec"]) != (not scalers and case.merged.get("replicas") is not None):
        yield "two say how many pods there are, or none does"
    for scaler in scalers:
        target = scaler["spec"]["scaleTargetRef"]
        if target != {"apiVersion": "apps/v1", "kind": "Deployment", "name": server["metadata"]["name"]}:
            yield f"HorizontalPodAutoscaler: scales {target}"
        for metric in scaler["spec"]["metrics"]:
            aim = f"{case.merged['autoscaling']['queueMilliseconds']:.0f}m"
            if metric["pods"]["target"] != {"type": "AverageValue", "averageValue": aim}:
                yield f"HorizontalPodAutoscaler: aims at {metric['pods']['target']}"
            if f"| `{metric['pods']['metric']['name']}` |" not in REFERENCE:
                yield f"HorizontalPodAutoscaler: gemmd has no metric {metric['pods']['metric']['name']}"


def check_files(case):
    """Volumes, their mounts, and the paths in flags."""
    for name, _, spec in pods(case.objects):
        container = chart.container(spec)
        volumes = [volume["name"] for volume in spec.get("volumes", [])]
        mounts = {mount["name"]: mount["mountPath"] for mount in container.get("volumeMounts", [])}
        if sorted(volumes) != sorted(mounts) or volumes == [] != spec.get("volumes", []):
            yield f"{name}: has the volumes {volumes} and mounts {sorted(mounts)}"
        for mount in container.get("volumeMounts", []):
            if mount["name"] in ("tls", "callers", "test") and not mount["readOnly"]:
                yield f"{name}: {mount['name']} can be written to"
        for flag in container["args"]:
            path = re.search(r"=(/.*)/", flag)
            if path and path[1] not in mounts.values():
                yield f"{name}: {flag} is in no volume"


def check_flags(case):
    args = chart.container(chart.deployment(case.objects)["spec"]["template"]["spec"])["args"]
    names = [arg.partition("=")[0] for arg in args]
    for name in names:
        if f"| `{name}` |" not in REFERENCE:
            yield f"gemmd has no flag {name}"
        if names.count(name) != 1:
            yield f"the flag {name} is given twice"
    given = dict(arg.removeprefix("--").split("=", 1) for arg in args)
    open_to_all = {"tls-certificate": "plaintext", "callers-file": "anonymous"}
    for flag, insecure in open_to_all.items():
        if not given[flag] and given.get("insecure") not in (insecure, "all"):
            yield f"--{flag} is empty, and the server would not start"


def check_test(case):
    services = {service["metadata"]["name"]: service for service in chart.of_kind(case.objects, "Service")}
    for pod in chart.of_kind(case.objects, "Pod"):
        container = chart.container(pod["spec"])
        host, port = re.match(r"--address=(.+):(\d+)", container["args"][0]).groups()
        name = host.removesuffix(f".{chart.NAMESPACE}.svc")
        if name not in services or int(port) not in [p["port"] for p in services[name]["spec"]["ports"]]:
            yield f"test: no service is at {host}:{port}"
        if container["image"] != chart.container(
                chart.deployment(case.objects)["spec"]["template"]["spec"])["image"]:
            yield "test: takes another image than the servers"


def check_names(loaded):
    """Names of other releases, to the longest that Helm takes."""
    for release, name in (("a", "a-gemmd"), ("my-gemmd", "my-gemmd"), ("r" * 53, "r" * 46 + "-gemmd"),
                          ("g" * 48 + "gemmd", "g" * 48 + "gemm")):
        objects = chart.render(loaded, chart.EXTENTS["whole"], release)
        if chart.deployment(objects)["metadata"]["name"] != name:
            yield f"release {release}: the Deployment is {chart.deployment(objects)['metadata']['name']}"
        for each in objects:
            if len(each["metadata"]["name"]) > 63:
                yield f"release {release}: {each['kind']} {each['metadata']['name']} is too long"


def check_lint():
    for name in "values.yaml", "values-host.yaml":
        for message in helm_python.lint(chart.CHART, chart.read_values(name), strict=True)["messages"]:
            if "icon is recommended" not in message["error"]:
                yield f"helm lint, {name}: {message['path']}: {message['error']}"


CHECKS = (check_schemas, check_objects, check_security, check_resources, check_ports, check_selectors,
          check_rollout, check_files, check_flags, check_test)


def main():
    cases = chart.cases()
    faults = [f"{case.name}: {fault}" for case in cases for check in CHECKS for fault in check(case)]
    with chart.load() as loaded:
        faults += check_names(loaded)
    faults += check_lint()
    for fault in faults:
        print(fault)
    print(f"{len(cases)} combinations, {sum(len(case.objects) for case in cases)} objects")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
