"""An admission webhook on loopback that does with Rollcall's writes what a file says.

Usage: serve.py PORT CERTIFICATE KEY MODE_FILE

Modes: allow, deny, fail, hang, strip (takes the conditions away) and reason (puts another reason into `Ready`).
"""

import base64
import http.server
import json
import pathlib
import ssl
import sys
import threading
import time

PORT, CERTIFICATE, KEY, MODE = sys.argv[1:]


def change(mode, conditions):
    """The JSON Patch by which a mode changes these conditions."""
    if mode == "strip" and conditions:
        return [{"op": "remove", "path": "/status/conditions"}]
    if mode == "reason":
        ready = (at for at, entry in enumerate(conditions) if entry["type"] == "Ready")
        return [{"op": "replace", "path": f"/status/conditions/{at}/reason", "value": "Managed"} for at in ready]
    return []


class Webhook(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        is_rollcall = (request.get("options") or {}).get("fieldManager") == "rollcall"
        mode = pathlib.Path(MODE).read_text().strip() if is_rollcall else "allow"
        if mode == "fail":
            return self.answer(500, b"")
        if mode == "hang":
            time.sleep(20)
        response = {"uid": request["uid"], "allowed": mode != "deny"}
        if mode == "deny":
            response["status"] = {"code": 403, "message": "denied by the tenants' policy"}
        status = (request.get("object") or {}).get("status") or {}
        patch = change(mode, status.get("conditions") or [])
        if patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        self.answer(200, json.dumps(review).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(PORT)), Webhook)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(CERTIFICATE, KEY)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
threading.Timer(1800, server.shutdown).start()
print("ready", flush=True)
server.serve_forever()
