#!/usr/bin/env python3
"""Check the metrics with promtool, and have a Prometheus read them and the alert rules.

    scripts/metrics.py [--bin PROGRAM]

Installs Prometheus by apt-get if it is missing. Checks the text of /metrics in both formats, that every metric of docs/metrics.md
and none besides is in it, that the rules in deploy/alerts.yml fire when they should and are evaluated without an error, and that every expression of every
panel of deploy/grafana.json returns data.
"""

import argparse
import contextlib
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from nodes import ROOT, Failure, Server, build, checked, free_port, install

# For each alert, series that fire it, one scrape every 15 s, and after how many minutes it is looked at. Counters with labels that are not
# known at the start appear with their first value.
FIRING = [
    ("NodeDown", {"up": "0x60"}, 8),
    ("NodeStorageFailure", {'ethnode_storage_failures_total{operation="write"}': "0x20 1x40"}, 6),
    ("NodeStorageFailure", {'ethnode_storage_failing{operation="write"}': "0x4 1x60"}, 15),
    ("NodeDiskAlmostFull", {"ethnode_storage_bytes": "1x60", "ethnode_storage_free_bytes": "100000000x60"}, 8),
    ("NodeHeadOld", {"ethnode_head_age_seconds": "700x60"}, 8),
    ("NodeReorganized", {"ethnode_reorganizations_total": "0x20 1x40"}, 6),
    ("NodeErrors", {'ethnode_http_requests_total{operation="call",status="500"}': "_x20 1x40"}, 6),
    ("NodeErrors", {'ethnode_rpc_calls_total{method="eth_call",code="-32603"}': "_x20 1x40"}, 6),
    ("NodeErrors", {'ethnode_rpc_calls_total{method="eth_call",code="-32603"}': "3x30 4x30"}, 9),
    ("NodeOverloaded", {'ethnode_executor_queue{pool="call"}': "60x60"}, 8),
    ("NodeOverloaded", {'ethnode_executor_refused_total{pool="work"}': "0x20 1+1x40"}, 9),
    ("NodeLimits", {'ethnode_http_refused_total{limit="rate-limit"}': "0+20x60"}, 12),
    ("NodeLogDropped", {"ethnode_log_lines_dropped_total": "0x20 5x40"}, 6),
    ("NodeFilesAlmostUsedUp", {"process_open_fds": "90x60", "process_max_fds": "100x60"}, 8),
]
# Series of a server without problems, and of errors that are over.
QUIET = {
    "up": "1x80", 'ethnode_storage_failures_total{operation="read"}': "2x80", 'ethnode_storage_failing{operation="read"}': "0x80", "ethnode_storage_bytes": "1x80",
    "ethnode_storage_free_bytes": "2000000000x80", "ethnode_head_age_seconds": "12x80", "ethnode_reorganizations_total": "1x80",
    'ethnode_http_requests_total{operation="call",status="500"}': "1x80", 'ethnode_http_requests_total{operation="call",status="200"}': "0+9x80",
    'ethnode_rpc_calls_total{method="eth_call",code="-32603"}': "1x80", 'ethnode_rpc_calls_total{method="eth_call",code="-32000"}': "0+9x80",
    'ethnode_executor_queue{pool="call"}': "3x80", 'ethnode_executor_refused_total{pool="call"}': "4x80",
    'ethnode_http_refused_total{limit="max-body"}': "200x80", "ethnode_log_lines_dropped_total": "7x80",
    "process_open_fds": "30x80", "process_max_fds": "100x80",
}

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


def get(url, accept="*/*"):
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.headers["Content-Type"], response.read().decode()


def post(url, body):
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read()


def refused(url):
    """Sends a request that the server refuses: a family without values is not in the text."""
    try:
        urllib.request.urlopen(urllib.request.Request(url, headers={"Host": "other.example"}), timeout=10)
    except urllib.error.HTTPError as error:
        assert error.code == 403, error
    else:
        raise Failure("a foreign host was accepted")


def requests(url):
    """Sends what fills the panels: a batch with results and an error, calls, and a request that is refused."""
    call = '{"jsonrpc":"2.0","id":1,"method":"%s","params":%s}'
    calls = [call % (method, parameters) for method, parameters in (
        ("eth_chainId", "[]"), ("eth_chainId", "[]"), ("eth_nonsense", "[]"), ("eth_getBlockByNumber", '["latest",true]'),
        ("eth_call", '[{"to":"0x4e59b44847b379578588920ca78fbf26c0b4956c"},"latest"]'))]
    post(f"{url}/", f"[{','.join(calls)}]")
    refused(f"{url}/chainId/")


def promtool(*arguments, text=None):
    done = subprocess.run(["promtool", *map(str, arguments)], input=text, capture_output=True, text=True)
    output = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        raise Failure(f"promtool {' '.join(map(str, arguments))}: {output}")
    return output


def documented():
    """The metrics in the table of docs/metrics.md."""
    return set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))


def check_text(address):
    media_type, text = get(address)
    assert media_type.startswith("text/plain; version=0.0.4"), media_type
    lint = promtool("check", "metrics", text=text)
    if lint:
        raise Failure(f"promtool check metrics is not silent: {lint}")
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    if families != documented():
        raise Failure(f"docs/metrics.md and the server differ: {sorted(families ^ documented())}")
    media_type, text = get(address, OPEN_METRICS)
    assert media_type.startswith(OPEN_METRICS) and text.endswith("# EOF\n"), media_type
    print(f"{len(families)} metrics in two formats, promtool silent")


def rules():
    """The expressions of the alert rules."""
    return re.findall(r"^ +expr: (.*)$", (ROOT / "deploy/alerts.yml").read_text(), re.MULTILINE)


def panels():
    """Yields the title of each panel of the dashboard with its expressions, whose variables have the values that they have in Grafana at first."""
    for panel in json.loads((ROOT / "deploy/grafana.json").read_text())["panels"]:
        expressions = [target["expr"] for target in panel.get("targets", [])]
        if expressions:
            # Grafana's interval for rates is at least four times 15 s, whatever is scraped more often.
            values = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*"}
            yield panel["title"], [re.sub(r"\$\w+", lambda variable: values[variable[0]], expression) for expression in expressions]


def empty_panels(url):
    """Returns the panels of which not every expression has a number in the Prometheus at `url`."""
    def has_data(expression):
        return any(sample["value"][1] != "NaN" for sample in query(url, expression))
    return [title for title, expressions in panels() if not all(map(has_data, expressions))]


def check_prometheus(metrics, folder, send):
    """Has Prometheus scrape the metrics with the rules loaded, and evaluates all expressions. `send` sends requests to the server."""
    rules = ROOT / "deploy/alerts.yml"
    promtool("check", "rules", rules)
    target = urllib.parse.urlsplit(metrics).netloc
    config = Path(folder) / "prometheus.yml"
    config.write_text(
        "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
        f"rule_files: [{json.dumps(str(rules))}]\n"
        f"scrape_configs: [{{job_name: ethnode, static_configs: [{{targets: [{json.dumps(target)}]}}]}}]\n"
    )
    url = f"http://127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address={url[7:]}"]
    with (Path(folder) / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            check_expressions(url, process, send)
        finally:
            process.terminate()


def check_alerts(folder):
    """Has promtool evaluate the rules over series that should fire each of them, and over those of a server without problems."""
    def case(series, minutes, expression, value):
        labelled = {name.rstrip("}") + ("," if "{" in name else "{") + 'job="ethnode",instance="a"}': values for name, values in series.items()}
        expected = [{"labels": "{}", "value": value}] if value else []
        return {"interval": "15s", "input_series": [{"series": name, "values": values} for name, values in labelled.items()],
                "promql_expr_test": [{"expr": expression, "eval_time": f"{minutes}m", "exp_samples": expected}]}

    rules = ROOT / "deploy/alerts.yml"
    firing = 'count(ALERTS{alertstate="firing"%s})'
    cases = [case(series, minutes, firing % f',alertname="{alert}"', 1) for alert, series, minutes in FIRING]
    cases.append(case(QUIET, 19, firing % "", 0))
    tests = Path(folder) / "alerts-test.yml"
    # JSON is YAML, too.
    tests.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": "15s", "tests": cases}))
    promtool("test", "rules", tests)
    alerts = set(re.findall(r"- alert: (\w+)", rules.read_text()))
    if alerts != {alert for alert, _, _ in FIRING}:
        raise Failure(f"alerts without a test: {sorted(alerts ^ {alert for alert, _, _ in FIRING})}")
    print(f"{len(alerts)} alerts fire when they should, in {len(FIRING)} cases, and none without a problem")


def query(url, expression):
    _, text = get(f"{url}/api/v1/query?query={urllib.parse.quote(expression)}")
    return json.loads(text)["data"]["result"]


def check_expressions(url, process, send):
    deadline, empty = time.monotonic() + 60, ["all"]
    while empty:
        if process.poll() is not None or time.monotonic() > deadline:
            raise Failure(f"panels without data: {', '.join(empty)}")
        # Rates need two scrapes with what they count.
        send()
        time.sleep(0.5)
        with contextlib.suppress(OSError):
            empty = empty_panels(url)
    for expression in rules():
        query(url, expression)
    if not query(url, 'ethnode_rpc_calls_total{method="eth_chainId",code="0"} >= 2'):
        raise Failure("the calls of a batch are not counted")
    print(f"Prometheus has data for all {len(list(panels()))} panels of the dashboard, and evaluates {len(rules())} rules")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, help="server program [default: build it]")
    binary = parser.parse_args().bin or build() / "ethnode"
    if not shutil.which("promtool") or not shutil.which("prometheus"):
        install("prometheus")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        arguments = ("dev", "--data-dir", f"{folder}/data", "--log", "warn", "--metrics-addr", f"127.0.0.1:{port}")
        with Server(binary, *arguments) as server:
            def send():
                requests(server.url)
            send()
            metrics = f"http://127.0.0.1:{port}/metrics"
            check_text(metrics)
            check_prometheus(metrics, folder, send)
            check_alerts(folder)


if __name__ == "__main__":
    checked(main)
