#!/usr/bin/env python3
"""Run a command with an empty bucket of a real S3 server, moto's, which this starts and ends.

    scripts/s3.py cargo test -p node-store --all-features --lib -- --ignored bucket

Needs moto[server,s3] from PyPI. The command gets the URL of the bucket in SHARED_STORE, and the endpoint and credentials in the environment variables
that clients of S3 read. The exit status is that of the command.
"""
import http.client
import os
import shutil
import socket
import subprocess
import sys
import time

BUCKET = "store"


def main() -> int:
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    server = shutil.which("moto_server")
    if server is None:
        print("moto_server is missing: pip install 'moto[server,s3]'")
        return 2
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    output = subprocess.DEVNULL
    with subprocess.Popen([server, "-H", "127.0.0.1", "-p", str(port)], stdout=output, stderr=output) as moto:
        try:
            create_bucket(port)
            environment = {
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
                "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "SHARED_STORE": f"s3://{BUCKET}",
            }
            return subprocess.run(sys.argv[1:], env=os.environ | environment, check=False).returncode
        finally:
            moto.terminate()


def create_bucket(port: int) -> None:
    """Wait for the server, and create the bucket."""
    deadline = time.monotonic() + 60
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("PUT", f"/{BUCKET}", headers={"Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request"})
            response = connection.getresponse()
            if response.status != 200:
                raise SystemExit(f"moto refuses to create a bucket: {response.status} {response.read().decode()}")
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
