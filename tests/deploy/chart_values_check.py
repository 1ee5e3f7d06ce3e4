#!/usr/bin/env python3
"""Checks the values of the Helm chart: what is wrong is refused, with what and why.

And values.yaml has every name of the schema, and no other; and the cases of chart.py set every
value to something that is not its default. Exits with 1 and a sentence for each difference.

    .venv/bin/python tests/deploy/chart_values_check.py
"""

import json
import sys

import chart
import helm_python

# Values, and what the error has to say.
REFUSED = (
    ({"device": "gpu"}, "at '/device': value must be one of 'cuda', 'host'"),
    ({"replica": 3}, "additional properties 'replica' not allowed"),
    ({"image": {"pullpolicy": "Always"}}, "at '/image': additional properties 'pullpolicy' not allowed"),
    ({"replicas": "3"}, "at '/replicas': got string, want null or integer"),
    ({"replicas": -1}, "at '/replicas': minimum: got -1, want 0"),
    ({"gpus": 0}, "at '/gpus': minimum: got 0, want 1"),
    ({"gpuResource": "gpu"}, "at '/gpuResource': 'gpu' does not match pattern"),
    ({"image": {"tag": "latest"}}, "image.tag is latest, which may be any version: name one"),
    ({"image": {"digest": "sha256:12"}}, "at '/image/digest': 'sha256:12' does not match pattern"),
    ({"tls": {"secret": ""}}, "tls.secret is empty and insecure is none: name a secret"),
    ({"tls": {"secret": ""}, "insecure": "anonymous"}, "tls.secret is empty and insecure is anonymous"),
    ({"callers": {"secret": ""}}, "callers.secret is empty and insecure is none: name a secret"),
    ({"callers": {"secret": ""}, "insecure": "plaintext"}, "callers.secret is empty and insecure is plaintext"),
    ({"tls": {"secret": "", "clientCa": "ca.crt"}, "insecure": "all"}, "tls.clientCa is ca.crt and tls.secret is empty"),
    ({"callers": {"secret": "", "quotas": "q"}, "insecure": "all"}, "callers.quotas is q and callers.secret is empty"),
    ({"tls": {"secret": "Gemmd"}}, "at '/tls/secret': 'Gemmd' does not match pattern"),
    ({"callers": {"quotas": "a/b"}}, "at '/callers/quotas': 'a/b' does not match pattern"),
    ({"insecure": True}, "at '/insecure': value must be one of 'none', 'plaintext', 'anonymous', 'all'"),
    ({"drain": {"delaySeconds": 10}}, "at '/drain/delaySeconds': minimum: got 10, want 11"),
    ({"drain": {"timeoutSeconds": "30s"}}, "at '/drain/timeoutSeconds': got string, want integer"),
    ({"startupSeconds": 1}, "at '/startupSeconds': minimum: got 1, want 2"),
    ({"extraArgs": ["-v"]}, "at '/extraArgs/0': '-v' does not match pattern"),
    ({"extraArgs": ["--drain-delay=1s"]}, "extraArgs has --drain-delay, which the chart sets"),
    ({"extraArgs": ["--insecure=all"]}, "extraArgs has --insecure, which the chart sets"),
    ({"extraArgs": ["--metrics-address=0.0.0.0:1"]}, "extraArgs has --metrics-address: probes and services"),
    ({"extraVolumes": [{"name": "tls", "emptyDir": {}}]}, "extraVolumes has tls, a name that the chart uses"),
    ({"extraVolumeMounts": [{"name": "a"}]}, "at '/extraVolumeMounts/0': missing property 'mountPath'"),
    ({"resources": {"limits": {"memory": "16GB"}}}, "at '/resources/limits/memory': '16GB' does not match pattern"),
    ({"service": {"type": "External"}}, "at '/service/type': value must be one of"),
    ({"networkPolicy": {"clients": []}}, "at '/networkPolicy/clients': minItems: got 0, want 1"),
    ({"podDisruptionBudget": {"maxUnavailable": "half"}}, "'half' does not match pattern"),
    ({"serviceMonitor": {"interval": "15"}}, "at '/serviceMonitor/interval': '15' does not match pattern"),
    ({"serviceMonitor": {"tokenSecret": ""}}, "at '/serviceMonitor/tokenSecret': minLength: got 0, want 1"),
    ({"prometheusRule": {"runbookBaseUrl": "git.example.com"}}, "'git.example.com' does not match pattern"),
    ({"dashboard": {"labels": {"a": 1}}}, "at '/dashboard/labels/a': got number, want string"),
    ({"autoscaling": {"enabled": True, "minReplicas": 5}}, "autoscaling.minReplicas is 5: at most maxReplicas, 4"),
    ({"autoscaling": {"queueMilliseconds": 0.2}}, "at '/autoscaling/queueMilliseconds': got number, want integer"),
)


def check_refusals(loaded):
    for values, wanted in REFUSED:
        try:
            chart.render(loaded, values)
            yield f"{json.dumps(values)} is taken"
        except (helm_python.HelmValuesError, helm_python.HelmRenderError) as error:
            if wanted not in str(error):
                yield f"{json.dumps(values)}: the error does not say {wanted!r}: {error}"


# Tables whose names are not the chart's.
FREE = {("resources",), ("dashboard", "labels")}


def leaves(values, path=()):
    """The path of every value that is no table of further values."""
    for name, value in values.items():
        below = (*path, name)
        if isinstance(value, dict) and value and below not in FREE:
            yield from leaves(value, below)
        else:
            yield below


def schema_leaves(properties, path=()):
    for name, schema in properties.items():
        below = (*path, name)
        if "properties" in schema and below not in FREE:
            yield from schema_leaves(schema["properties"], below)
        else:
            yield below


def check_names():
    here, allowed = set(leaves(chart.read_values("values.yaml"))), set(schema_leaves(read_schema()["properties"]))
    yield from (f"values.yaml has {'.'.join(path)}, which the schema refuses" for path in sorted(here - allowed))
    # `global` is Helm's, for charts within charts.
    yield from (f"values.yaml lacks {'.'.join(path)}" for path in sorted(allowed - here - {("global",)}))


def read_schema():
    return json.loads((chart.CHART / "values.schema.json").read_text(encoding="utf-8"))


NOT_SET = object()


def value_at(values, path):
    for name in path:
        if not isinstance(values, dict) or name not in values:
            return NOT_SET
        values = values[name]
    return values


def check_cases():
    """A value that no case sets is rendered by none."""
    defaults = chart.read_values("values.yaml")
    for path in leaves(defaults):
        default = value_at(defaults, path)
        given = [value_at(values, path) for _, values in chart.combinations()]
        if all(value in (NOT_SET, default) for value in given):
            yield f"chart.py: no case sets {'.'.join(path)} to another value than {default!r}"


def main():
    with chart.load() as loaded:
        faults = [*check_refusals(loaded), *check_names(), *check_cases()]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
