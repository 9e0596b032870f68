"""Checks the live view of a run in headless Chromium: the page must update as records arrive and keep the reader's tab.

    python3 live_view.py --prism build/release/bin/prism --run RUN [--pictures FOLDER]

RUN is a finished run. The test shows half of its records, then all, and drives the browser through chromedriver.
"""
import argparse
import atexit
import base64
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

PATIENCE_S = 60


def fail(expected, found):
    sys.exit(f"expected {expected}; found {found}")


def wait_for(what, call):
    """Returns the first true result of `call`; fails after PATIENCE_S seconds."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if value := call():
            return value
        time.sleep(0.2)
    return fail(what, f"none within {PATIENCE_S} s")


def line_with(process, start):
    for line in process.stdout:
        if start in line:
            return line.strip()
    return fail(f"a line with {start}", f"an end with status {process.wait()}")


class Browser:
    def __init__(self, folder):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        atexit.register(self.driver.kill)  # also if no session starts
        port = line_with(self.driver, "successfully on port").rstrip(".").split()[-1]
        self.session = f"http://127.0.0.1:{port}/session"
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,1600",
                            f"--user-data-dir={folder}"]}
        self.session += "/" + self.ask("", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}})["sessionId"]

    def ask(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.session + path, data), timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]

    def go(self, url):
        self.ask("/url", {"url": url})

    def run(self, script):
        return self.ask("/execute/sync", {"script": script, "args": []})

    def text(self):
        return self.run("return document.body ? document.body.innerText : ''")

    def keep_picture(self, file):
        file.write_bytes(base64.b64decode(self.ask("/screenshot")))

    def close(self):
        urllib.request.urlopen(urllib.request.Request(self.session, method="DELETE"), timeout=PATIENCE_S).close()
        self.driver.terminate()
        self.driver.wait()


def look(browser, url, live, lines, pictures):
    browser.go(url)
    wait_for("a run that goes on", lambda: "% done" in browser.text())
    if browser.run("return performance.getEntriesByType('resource').length") != 0:
        fail("a page that loads nothing else", browser.run("return performance.getEntriesByType('resource')"))
    tabs = browser.run("return [...document.querySelectorAll('[role=tab]')].map(tab => tab.textContent)")
    if "Training" not in tabs or "Diagnostics" not in tabs:
        fail("tabs for training and diagnostics", tabs)
    if pictures:
        browser.keep_picture(pictures / "live_training.png")
    browser.run("[...document.querySelectorAll('[role=tab]')].find(tab => tab.textContent == 'Diagnostics').click()")
    if pictures:
        browser.keep_picture(pictures / "live_diagnostics.png")
    with open(live / "records.jsonl", "a") as records:
        records.writelines(lines)
    wait_for("a page that renews itself to its end", lambda: browser.text() and "% done" not in browser.text())
    chosen = browser.run("return document.querySelector('[role=tab][aria-selected=true]').textContent")
    if chosen != "Diagnostics":
        fail("the tab that the reader chose, Diagnostics", chosen)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prism", required=True)
    parser.add_argument("--run", required=True, type=pathlib.Path)
    parser.add_argument("--pictures", type=pathlib.Path, help="a folder for two screenshots")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        live = folder / args.run.resolve().name
        live.mkdir()
        shutil.copy(args.run / "recipe.json", live)
        lines = (args.run / "records.jsonl").read_text().splitlines(keepends=True)
        half = len(lines) // 2
        (live / "records.jsonl").write_text("".join(lines[:half]))
        server = subprocess.Popen([args.prism, "report", "--watch", live, "--port", "0"], stdout=subprocess.PIPE, text=True)
        browser = None
        try:
            url = line_with(server, "http://127.0.0.1:")
            browser = Browser(folder / "browser")
            look(browser, url, live, lines[half:], args.pictures)
        finally:
            if browser:
                browser.close()
            server.terminate()
            server.wait()
    print("the page renewed itself and kept its tab")


if __name__ == "__main__":
    main()
