#!/usr/bin/env python3
"""Open the pages of a server in headless Chromium, and check what they show.

    scripts/pages.py [--bin FOLDER] [--screenshots FOLDER] [CHECK…]

--list lists the checks. Needs Chromium and Playwright. The browser can reach no other host.
"""

import contextlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import nodes
from nodes import ALICE, Failure, Missing, Server, expect, need

try:
    from playwright.sync_api import Error, TimeoutError as NotInTime, sync_playwright
except ImportError:
    Error = None

BOB = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 360, "height": 740}
# Milliseconds until something must have appeared.
PATIENCE = 20_000
# Console messages that a page cannot prevent when its server is gone or refuses it.
EXPECTED_WHEN_GONE = "Failed to load resource"


class Browser:
    """A browser that can reach only this machine, and the servers whose pages it opens."""

    def __init__(self, options):
        self.binary = options.server
        self.screenshots = options.screenshots
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        playwright = self.stack.enter_context(sync_playwright())
        arguments = ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")
        self.chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        self.stack.callback(self.chromium.close)
        return self

    def __exit__(self, *exception):
        return self.stack.__exit__(*exception)

    def server(self, *arguments, data_dir=":memory:", port=0):
        """Starts a development chain that impersonates ALICE."""
        return Server(self.binary, "dev", "--data-dir", data_dir, *arguments, port=port)

    @contextlib.contextmanager
    def page(self, url, size=DESKTOP, expected=None, route=None, **context):
        """Opens a page that must neither log errors nor contact other servers, except for `expected` errors. `route`
        replaces responses of the server."""
        context = self.chromium.new_context(viewport=size, **context)
        context.set_default_timeout(PATIENCE)
        faults = []
        origin = "/".join(url.split("/")[:3])

        def on_request(request):
            if not request.url.startswith((f"{origin}/", "data:", "blob:")):
                faults.append(f"a request to {request.url}")

        def on_console(message):
            if message.type in ("error", "warning", "assert") and not (expected and expected in message.text):
                faults.append(f"{message.type}: {message.text} ({message.location.get('url')})")

        page = context.new_page()
        page.on("request", on_request)
        page.on("console", on_console)
        page.on("pageerror", lambda error: faults.append(f"uncaught: {error}"))
        if route:
            page.route("**/*", route)
        try:
            page.goto(url)
            yield page
        except Exception as error:
            raise Failure(f"{error}\n{page.url} complains: {faults}, and shows:\n{page.inner_text('body')[:2000]}") from error
        finally:
            # The page may be in the middle of a request.
            page.unroute_all(behavior="ignoreErrors")
            context.close()
        if faults:
            raise Failure("\n".join([f"{url} complains:", *faults]))

    @contextlib.contextmanager
    def live(self, **options):
        """A server with a page that shows its head."""
        with self.server() as server, self.page(f"{server.url}/", **options) as page:
            is_live(page)
            shows_head(page, block(server))
            yield server, page

    def picture(self, page, name):
        if self.screenshots:
            self.screenshots.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=self.screenshots / f"{name}.png", full_page=True)


def wait(page, what, expression, argument=None):
    """Waits until a JavaScript function returns true."""
    try:
        page.wait_for_function(expression, arg=argument)
    except NotInTime:
        raise Failure(f"not seen: {what}") from None


def is_live(page):
    wait(page, "the page is live", "() => document.querySelector('#live').dataset.state === 'live'")


def shows_head(page, block):
    """Waits until the page shows `block`, a response of getBlockByNumber, as head and first in its list."""
    wait(
        page,
        f"block {block['Number']} is the head",
        """([number, hash]) => document.querySelector('#number').textContent.replaceAll(',', '') === number
            && document.querySelector('#hash').textContent === hash
            && document.querySelector('#blocks > li').dataset.key === hash""",
        [block["Number"], block["Hash"]],
    )


def block(server, which="latest"):
    return server.get(f"/getBlockByNumber/{which}/false/")["Block"]


def send(server, value="1", **more):
    """Sends a transaction from ALICE to BOB, which is mined at once."""
    server.ask("/dev/impersonate/", {"Address": ALICE})
    transaction = {"From": ALICE, "To": BOB, "Value": value, **more}
    return server.ask("/dev/sendTransaction/", {"Transaction": transaction})["TransactionHash"]


def rows(page, name):
    """Returns the keys of a list."""
    return page.eval_on_selector_all(f"#{name} > li", "rows => rows.map(row => row.dataset.key)")


def busy_chain(server):
    """Mines blocks with and without transactions that cover some minutes up to now."""
    server.ask("/dev/mine/", {"Blocks": 1})
    for index in range(40):
        for _ in range(index % 4):
            send(server, str((index + 1) * 10**17), Data="0x" + "00" * (index % 7) * 20_000)
        server.ask("/dev/mine/", {"Blocks": 1, "Interval": 1})


def genesis_alone(browser):
    """a chain with only the genesis block, and then its first block"""
    with browser.live() as (server, page):
        expect("blocks", len(rows(page, "blocks")), 1)
        expect("transactions", rows(page, "transactions"), [])
        expect("the hint", page.is_visible("#no-transactions"), True)
        expect("bars", page.locator("#gas .bar").count(), 1)
        expect("chain id", page.inner_text("#chain-id"), "31337")
        expect("version", page.inner_text("#version"), server.get("/clientVersion/")["ClientVersion"])
        browser.picture(page, "genesis")
        server.ask("/dev/mine/", {"Blocks": 1})
        shows_head(page, block(server))
        expect("bars", page.locator("#gas .bar").count(), 2)


def transactions_arrive(browser):
    """transactions and blocks appear, and the charts move, without a reload"""
    with browser.live() as (server, page):
        page.evaluate("window.loadedOnce = true")
        hashes = [send(server, str(10**18 + index)) for index in range(3)]
        head = block(server)
        shows_head(page, head)
        expect("transactions", [key[66:] for key in rows(page, "transactions")], hashes[::-1])
        expect("values", page.inner_text("#transactions > li b"), "1 ETH")
        expect("blocks", len(rows(page, "blocks")), 4)
        before = page.get_attribute("#fees .line", "d")
        server.ask("/dev/mine/", {"Blocks": 70})
        shows_head(page, block(server))
        expect("bars", page.locator("#gas .bar").count(), 60)
        expect("the line of fees moved", page.get_attribute("#fees .line", "d") != before, True)
        expect("blocks", len(rows(page, "blocks")), 10)
        # They are much older than the listed blocks, but remain the newest.
        expect("transactions", [key[66:] for key in rows(page, "transactions")], [])
        send(server)
        shows_head(page, block(server))
        expect("gas price", page.inner_text("#gas-price").split()[-1], "gwei")
        expect("loaded once", page.evaluate("window.loadedOnce"), True)


def rows_open(browser):
    """rows expand, also by keyboard, and stay open; created contracts and reverts are shown"""
    with browser.live() as (server, page):
        # Code that reverts, and code that creates an empty contract.
        reverted = send(server, "0", To=None, Data="0x60006000fd", Gas="100000")
        created = send(server, "0", To=None, Data="0x00", Gas="100000")
        shows_head(page, block(server))
        contract = server.get(f"/getTransactionReceipt/{created}/")["TransactionReceipt"]["ContractAddress"]
        page.focus("#transactions > li summary")
        page.keyboard.press("Enter")
        page.wait_for_selector("#transactions dl")
        text = page.inner_text("#transactions dl")
        for part in (created, contract, "Succeeded"):
            expect(f"{part} is shown", part in text, True)
        page.click("#transactions > li:nth-child(2) summary")
        page.wait_for_selector("#transactions > li:nth-child(2) dl")
        expect("a failure in the list", page.inner_text("#transactions .failed").startswith("Failed: "), True)
        expect("a failure", "Failed" in page.inner_text("#transactions > li:nth-child(2) dl"), True)
        expect("the second", rows(page, "transactions")[1][66:], reverted)
        page.click("#blocks > li summary")
        page.wait_for_selector("#blocks dl")
        text = page.inner_text("#blocks dl")
        for part in (block(server)["StateRoot"], block(server)["ParentHash"], "of 30,000,000"):
            expect(f"{part} is shown", part in text, True)
        expect("the link", page.get_attribute("#blocks dl a", "href"), f"{server.url}/getBlockByHash/{block(server)['Hash']}/true/")
        send(server)
        shows_head(page, block(server))
        expect("open rows", page.locator("details[open]").count(), 3)


def charts_are_read(browser):
    """charts show the value under the pointer, and values selected by arrow keys"""
    with browser.server() as server:
        busy_chain(server)
        with browser.page(f"{server.url}/") as page:
            is_live(page)
            shows_head(page, block(server))
            history = server.ask("/feeHistory/", {"BlockCount": "60"})
            expect("bars", page.locator("#gas .bar").count(), len(history["GasUsedRatio"]))
            for name, last in (("fees", "next block"), ("gas", f"block {block(server)['Number']}")):
                svg, output = f"#{name} svg", f"#{name} output"
                expect("at rest", page.inner_text(output).endswith(f", {last}"), True)
                expect("named", last in page.get_attribute(svg, "aria-label"), True)
                page.hover(svg, position={"x": 1, "y": 20})
                expect("the first", page.inner_text(output).endswith(f", block {history['OldestBlock']}"), True)
                page.mouse.move(0, 0)
                expect("at rest", page.inner_text(output).endswith(f", {last}"), True)
                page.focus(svg)
                page.keyboard.press("ArrowLeft")
                expect("the one before", page.inner_text(output).endswith(f", {last}"), False)


def reorganizations_show(browser):
    """blocks that leave the chain disappear from the page, whether others replace them or not"""
    with browser.live() as (server, page):
        server.ask("/dev/mine/", {"Blocks": 4})
        snapshot = server.ask("/dev/snapshot/", {})["SnapshotId"]
        sent = send(server)
        shows_head(page, block(server))
        old = rows(page, "blocks")
        response = server.ask("/dev/reorganize/", {"Blocks": 2})
        # The transaction is mined again, in a later block.
        shows_head(page, block(server))
        new = rows(page, "blocks")
        expect("removed blocks that are still shown", set(response["Removed"]) & set(new), set())
        expect("removed blocks that were shown", set(response["Removed"]) <= set(old), True)
        expect("added blocks that are missing", set(response["Added"]) - set(new), set())
        expect("the transaction", rows(page, "transactions"), [block(server)["Hash"] + sent])
        expect("the notice", page.inner_text("#reorganized"), "Blocks 4 to 5 left the chain.")
        server.ask("/dev/mine/", {"Blocks": 3})
        shows_head(page, block(server))
        server.ask("/dev/revert/", {"SnapshotId": snapshot})
        shows_head(page, block(server))
        expect("blocks", len(rows(page, "blocks")), 5)
        expect("transactions", rows(page, "transactions"), [])


def the_server_comes_back(browser):
    """a lost connection is shown, the page continues when the server is back, and starts over on another chain"""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        server = stack.enter_context(browser.server(data_dir=folder))
        port = int(server.url.rsplit(":", 1)[1])
        server.ask("/dev/mine/", {"Blocks": 3})
        page = stack.enter_context(browser.page(f"{server.url}/", expected=EXPECTED_WHEN_GONE))
        is_live(page)
        shows_head(page, block(server))
        for data_dir, mined in ((folder, 2), (":memory:", 1)):
            server.stop()
            wait(page, "the lost connection is shown", "() => document.querySelector('#live').dataset.state === 'lost'")
            server = stack.enter_context(browser.server(data_dir=data_dir, port=port))
            is_live(page)
            shows_head(page, block(server))
            server.ask("/dev/mine/", {"Blocks": mined})
            shows_head(page, block(server))


def hidden_pages_hold_no_stream(browser):
    """a hidden page disconnects, and catches up when it is visible again"""
    become = """hidden => {
        Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
    }"""
    with browser.server() as server, browser.page(f"{server.url}/") as page:
        is_live(page)
        page.evaluate(become, True)
        wait(page, "the stream ends", "() => document.querySelector('#live').textContent === 'Paused'")
        server.ask("/dev/mine/", {"Blocks": 2})
        page.evaluate(become, False)
        is_live(page)
        shows_head(page, block(server))


def tokens_are_asked_for(browser):
    """if the server needs a token, the page asks for it, sends it with all requests, and remembers it in the tab"""

    def guard(route):
        path = route.request.url.removeprefix(server.url)
        if path == "/" or path.startswith("/assets/"):
            route.continue_()
        elif route.request.headers.get("authorization") == "Bearer right":
            route.continue_()
        else:
            body = '{"detail": "a token is needed", "status": 401}'
            route.fulfill(status=401, content_type="application/problem+json", body=body)

    with (browser.server() as server, browser.page(f"{server.url}/", expected=EXPECTED_WHEN_GONE, route=guard) as page):
        for token in ("wrong", "right"):
            page.wait_for_selector("#ask[open]")
            page.fill("#token", token)
            page.keyboard.press("Enter")
        is_live(page)
        shows_head(page, block(server))
        page.click("#blocks > li summary")
        page.wait_for_selector("#blocks dl")
        expect("links without a token", page.locator("#blocks dl a").count(), 0)
        page.reload()
        is_live(page)
        shows_head(page, block(server))
        expect("the address", page.url, f"{server.url}/")
        expect("kept in the tab", page.evaluate("[sessionStorage.length, localStorage.length]"), [1, 0])


def hostile_responses(browser):
    """data of the chain is shown as text and never as markup, and no number is too large"""
    markup = "<img src=x onerror=document.title='broken'>"

    def change(route):
        if "/getBlockBy" not in route.request.url:
            return route.continue_()
        response = route.fetch()
        body = response.json()
        body["Block"].update(ExtraData="0x" + markup.encode().hex(), GasLimit=str(2**64 - 1), Timestamp=str(2**64 - 1))
        route.fulfill(response=response, json=body)

    with browser.server() as server, browser.page(f"{server.url}/", route=change) as page:
        server.ask("/dev/setBalance/", {"Address": ALICE, "Balance": str(2**256 - 1)})
        send(server, str(2**255))
        is_live(page)
        page.wait_for_selector("#transactions > li")
        expect("a huge value", page.inner_text("#transactions > li b"), "5.789 × 10^58 ETH")
        page.click("#blocks > li summary")
        page.wait_for_selector("#blocks dl")
        expect("extra data", f"“{markup}”" in page.inner_text("#blocks dl"), True)
        expect("elements of it", page.locator("#blocks img").count(), 0)
        fits(page, DESKTOP)
        page.set_viewport_size(PHONE)
        fits(page, PHONE)
        expect("the title", "broken" in page.title(), False)


FORMATS = [
    ("wei", "[0n]", "0 wei"), ("wei", "[1n]", "1 wei"), ("wei", "[999999n]", "999,999 wei"), ("wei", "[1000000n]", "0.001 gwei"),
    ("wei", "[123456789n]", "0.123456 gwei"), ("wei", "[10n ** 15n]", "0.001 ETH"), ("wei", "[10n ** 18n]", "1 ETH"),
    ("wei", "[1234567n * 10n ** 18n + 5n * 10n ** 17n]", "1,234,567.5 ETH"), ("wei", "[2n ** 256n - 1n]", "1.157 × 10^59 ETH"),
    ("wei", "[5n, 10n ** 9n]", "0 gwei"), ("integer", "[2n ** 64n - 1n]", "18,446,744,073,709,551,615"),
    ("integer", "[10n ** 21n]", "1.000 × 10^21"), ("age", "[1000, 1000000]", "now"), ("age", "[1004, 1000000]", "now"),
    ("age", "[998, 1000000]", "2 s ago"), ("age", "[990, 1000000]", "10 s ago"), ("age", "[1300, 1000000]", "in 5 min"),
    ("age", "['18446744073709551615', 0]", "in 584,542,046,090 y"), ("date", "['0']", "1970-01-01 00:00:00 UTC"),
    ("date", "['18446744073709551615']", "18446744073709551615 s"), ("percent", "[0.0007]", "0.07 %"), ("percent", "[0.5]", "50 %"),
    ("text", "['0x']", ""), ("text", "['0x68c3a9']", "hé"), ("text", "['0xff']", ""), ("text", "['0x61e280ae62']", ""), ("text", "['0x610a62']", ""),
]


def numbers_are_written(browser):
    """amounts, times and sizes are formatted for people"""
    with browser.server() as server, browser.page(f"{server.url}/") as page:
        for function, arguments, wanted in FORMATS:
            script = f"async () => (await import('./assets/format.js')).{function}(...{arguments})"
            expect(f"{function} of {arguments}", page.evaluate(script), wanted)


def fits(page, size):
    """Checks that nothing is wider than the window."""
    width = page.evaluate("document.documentElement.scrollWidth")
    if width > size["width"]:
        raise Failure(f"{page.url} is {width} pixels wide in a window of {size['width']}")


def both_sizes_and_schemes(browser):
    """desktop and phone, light and dark: no horizontal scrolling, and every focusable element has a name"""
    with browser.server() as server:
        busy_chain(server)
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            for scheme in ("light", "dark"):
                with browser.page(f"{server.url}/", size, color_scheme=scheme, reduced_motion="reduce") as page:
                    is_live(page)
                    shows_head(page, block(server))
                    browser.picture(page, f"home-{name}-{scheme}")
                    page.click("#blocks > li summary")
                    page.click("#transactions > li summary")
                    page.wait_for_selector("#blocks dl")
                    page.wait_for_selector("#transactions dl")
                    fits(page, size)
                    browser.picture(page, f"home-{name}-{scheme}-open")
                    moving = "getComputedStyle(document.querySelector('#live'), '::before').animationName"
                    expect("motion", page.evaluate(moving), "none")
                    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
                    expect("dark", sum(map(int, ground[4:-1].split(","))) < 200, scheme == "dark")
                    nameless = page.evaluate(
                        """() => [...document.querySelectorAll('a, summary, button, input, [tabindex]')]
                            .filter(one => !(one.textContent.trim() || one.ariaLabel || one.labels?.length))
                            .map(one => one.outerHTML)"""
                    )
                    expect("without a name", nameless, [])


def under_a_base_path(browser):
    """all URLs are relative: the pages work under any base path, with and without a trailing slash"""
    with browser.server("--base-path", "/v1/node") as server:
        url = f"{server.url}/v1/node"
        for path in ("", "/"):
            with browser.page(url + path) as page:
                is_live(page)
                expect("the address", page.url, f"{url}/")
                head = server.get("/v1/node/getBlockByNumber/latest/false/")["Block"]
                shows_head(page, head)
                expect("icon", page.evaluate("document.querySelector('img').naturalWidth > 0"), True)
        for path in ("/docs", "/docs/"):
            with browser.page(url + path) as page:
                expect("the address", page.url, f"{url}/docs/")
                expect("chain id", try_out(page, "GET", "/chainId/")["ChainId"], "31337")


def try_out(page, method, path, body=None):
    """Executes an operation on the page /docs/. Returns the body of the 200 response that it shows."""
    operation = page.locator(f".opblock-{method.lower()}", has=page.locator(f'[data-path="{path}"]'))
    if not operation.locator(".opblock-body").count():
        operation.locator(".opblock-summary-control").click()
    operation.locator(".execute").wait_for()
    if body is not None:
        operation.locator("textarea.body-param__text").fill(json.dumps(body))
    operation.locator(".execute").click()
    response = operation.locator(".live-responses-table")
    response.wait_for()
    expect(f"status of {method} {path}", response.locator(".response-col_status").last.inner_text().split()[0], "200")
    return json.loads(response.locator(".highlight-code code").first.inner_text())


def operations_are_tried_out(browser):
    """/docs/ lists every operation of the OpenAPI document, and shows responses of those that are tried"""
    with browser.server() as server:
        for name, size in (("desktop", DESKTOP), ("phone", PHONE)):
            for scheme in ("light", "dark"):
                with browser.page(f"{server.url}/docs/", size, color_scheme=scheme) as page:
                    page.wait_for_selector(".opblock")
                    described = server.get("/openapi.json")["paths"]
                    wanted = {(method, path) for path, operations in described.items() for method in operations if method in ("get", "post")}
                    expect("operations", page.locator(".opblock").count(), len(wanted))
                    fits(page, size)
                    browser.picture(page, f"docs-{name}-{scheme}")
                    expect("chain id", try_out(page, "GET", "/chainId/")["ChainId"], "31337")
                    call = {"Transaction": {"To": BOB}}
                    expect("a call", try_out(page, "POST", "/call/", call)["Data"], "0x")
                    fits(page, size)
                    browser.picture(page, f"docs-{name}-{scheme}-response")
        with browser.page(f"{server.url}/docs/") as page:
            mined = try_out(page, "POST", "/dev/mine/", {"Blocks": "2"})
            expect("blocks mined", mined["BlockNumber"], "2")
            opened = page.url
            expect("a link to the operation", "#/" in opened, True)
        with browser.page(opened) as page:
            page.wait_for_selector(".opblock.is-open .execute")


CHECKS = [
    genesis_alone, transactions_arrive, rows_open, charts_are_read, reorganizations_show, the_server_comes_back,
    hidden_pages_hold_no_stream, tokens_are_asked_for, hostile_responses, numbers_are_written, both_sizes_and_schemes, operations_are_tried_out, under_a_base_path,
]


def play(options):
    """Runs the checks in one browser."""
    need("chromium")
    if Error is None:
        raise Missing("Playwright is not installed: pip install playwright==1.65.2")
    try:
        with Browser(options) as browser:
            for check in (check for check in CHECKS if check.__name__ in options.parts):
                print(f"{check.__name__}: {check.__doc__}", flush=True)
                check(browser)
    except Error as error:
        raise Failure(str(error)) from error


if __name__ == "__main__":
    nodes.main(__doc__, {check.__name__: check for check in CHECKS}, together=play, arguments=lambda parser: parser.add_argument(
        "--screenshots", type=Path, help="a folder for pictures of the pages"))
