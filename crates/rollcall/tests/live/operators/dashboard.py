"""Answers as the dashboards of Ray clusters do, by a proxy that the operator is told to use for them.

What belongs to an object whose name begins with `fails-` has failed, everything else works.
"""
import http.server
import json
import sys
import urllib.parse


class Dashboard(http.server.BaseHTTPRequestHandler):
    def answer(self):
        url = urllib.parse.urlsplit(self.path)
        fails = url.netloc.startswith("fails-")
        if url.path.startswith("/api/jobs/"):
            body = {
                "status": "FAILED" if fails else "SUCCEEDED",
                "message": "Job entrypoint command failed with exit code 2" if fails else "Job finished successfully.",
                "submission_id": url.path.rsplit("/", 1)[1],
            }
        elif url.path.startswith("/api/serve/applications/"):
            application = {"name": "app", "route_prefix": "/", "deployments": {}}
            if fails:
                application |= {"status": "DEPLOY_FAILED", "message": "No module named 'app'"}
            else:
                healthy = {"name": "main", "status": "HEALTHY"}
                application |= {"status": "RUNNING", "deployments": {"main": healthy}}
            body = {"applications": {"app": application}}
        else:
            body = "success"
        text = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Dashboard).serve_forever()
