"""A Prometheus on loopback that scrapes one address, and its answers."""
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

# It is up in a second; a machine that is busy gets a minute.
START_TIMEOUT_SECONDS = 60


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class ScrapingPrometheus:
    """A running Prometheus; ended on leaving its `with`."""

    def __init__(self, folder, target, rules):
        folder.mkdir(parents=True)
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{
                "job_name": "rollcall", "honor_labels": True,
                # As the pod would be called in a cluster.
                "static_configs": [{"targets": [target], "labels": {"instance": "rollcall-0"}}],
            }],
        }
        (folder / "prometheus.yaml").write_text(json.dumps(config))
        self.address = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen([
            "prometheus", f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={self.address.removeprefix('http://')}", "--log.level=error",
        ])

    def __enter__(self):
        end = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < end:
            try:
                if self.instant("rollcall_build_info"):
                    return self
            except (urllib.error.URLError, ConnectionError):
                pass
            time.sleep(0.2)
        self.process.kill()
        raise TimeoutError("Prometheus scrapes nothing")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def ask(self, path, **arguments):
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{arguments}: {error.read().decode()}") from error

    def instant(self, query):
        """Labels and number of each series now."""
        found = [(series["metric"], float(series["value"][1])) for series in self.ask("query", query=query)]
        return [(labels, value) for labels, value in found if value == value]

    def over_time(self, query, start, end, step):
        """Labels and points of each series."""
        found = []
        for series in self.ask("query_range", query=query, start=start, end=end, step=step):
            points = [(at, float(value)) for at, value in series["values"] if float(value) == float(value)]
            if points:
                found.append((series["metric"], points))
        return found
