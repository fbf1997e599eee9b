"""An S3 server behind a link that is slow, and sometimes down."""

import asyncio
import contextlib
import multiprocessing
import os
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from nodes import free_port, need, process, wait_for
from s3 import BUCKET, create_bucket

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}


class Link:
    """A connection to a server that is slow, and sometimes down: a process that passes bytes on."""

    def __init__(self, port, milliseconds):
        self.port, self.down = free_port(), multiprocessing.Value("b", 0)
        arguments = (self.port, port, milliseconds / 1000, self.down)
        self.process = multiprocessing.Process(target=lambda: asyncio.run(pass_on(*arguments)), daemon=True)
        self.process.start()
        wait_for("the link", lambda: socket.create_connection(("127.0.0.1", self.port)).close() is None)

    def stop(self):
        self.process.terminate()
        self.process.join()


async def pass_on(port, target, seconds, down):
    # s3s-fs looks whether an object exists before it writes it, so that two simultaneous creations both succeed. Services let one
    # succeed, so only one is passed on at a time.
    connections, creation = set(), asyncio.Lock()
    creating = None

    async def begin(piece, writer):
        nonlocal creating
        if piece.startswith(b"PUT ") and b"\r\nif-none-match: *" in piece.lower():
            await creation.acquire()
            creating = writer

    def end(writer):
        nonlocal creating
        if creating is writer:
            creating = None
            creation.release()

    async def copy(reader, writer, own, wait, client=None):
        # Each piece leaves a fixed time after it has arrived, so the rate is not limited.
        queue, source = asyncio.Queue(), own.get_extra_info("socket")

        async def send():
            while item := await queue.get():
                at, piece = item
                await asyncio.sleep(max(0.0, at - time.monotonic()))
                writer.write(piece)
                await writer.drain()

        sending = asyncio.create_task(send())
        with contextlib.suppress(OSError):
            while True:
                # s3s-fs sends the body when the head is acknowledged, which systems delay by up to 40 ms.
                source.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
                if not (piece := await reader.read(65_536)):
                    break
                if client:
                    end(client)
                else:
                    await begin(piece, own)
                queue.put_nowait((time.monotonic() + wait, piece))
        queue.put_nowait(None)
        with contextlib.suppress(OSError):
            await sending
        end(client or own)
        writer.close()

    async def connected(reader, writer):
        if down.value:
            return writer.transport.abort()
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", target)
        pair = (writer, far_writer)
        connections.add(pair)
        await asyncio.gather(copy(reader, far_writer, writer, 0), copy(far_reader, writer, far_writer, seconds, writer))
        connections.discard(pair)

    async with await asyncio.start_server(connected, "127.0.0.1", port):
        while True:
            await asyncio.sleep(0.02)
            for writer in [writer for pair in connections for writer in pair] if down.value else []:
                writer.transport.abort()


class Bucket:
    """An S3 server with an empty bucket, behind a slow link."""

    def __init__(self, stack, options, milliseconds):
        need(options.s3)
        port, folder = free_port(), Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / BUCKET).mkdir()
        s3s = ["s3s-fs", "--host", "127.0.0.1", "--port", port, "--access-key", "test", "--secret-key", "testtest", folder]
        command = s3s if options.s3 == "s3s-fs" else [options.s3, "-H", "127.0.0.1", "-p", port]
        stack.enter_context(process(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        wait_for(f"the start of {options.s3}", lambda: socket.create_connection(("127.0.0.1", port)).close() is None, 60)
        if options.s3 != "s3s-fs":
            create_bucket(port)
        self.port, self.url = port, f"s3://{BUCKET}"
        self.connect(stack, milliseconds)

    def connect(self, stack, milliseconds):
        """Lets servers that are started from now on use another link."""
        self.link = Link(self.port, milliseconds)
        stack.callback(self.link.stop)
        os.environ.update(CREDENTIALS, AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.link.port}")
