"""Two browsers without a screen, told what to do by their own protocols: Chromium by DevTools, Firefox by Marionette."""

import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import websocket

WIDTH, HEIGHT, SCALE = 390, 760, 2
PHONES = {
    "chromium": "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/%s Mobile Safari/537.36",
    "firefox": "Mozilla/5.0 (Android 14; Mobile; rv:%s) Gecko/%s Firefox/%s",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    """`profile` is kept over `kill`, as a phone keeps it over a crash of its browser."""

    def __init__(self, language="en"):
        self.language = language
        self.profile = tempfile.mkdtemp(prefix="browser-", dir="/var/tmp")
        self.process = None

    def kill(self):
        if self.process:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
        self.process = None

    def close(self):
        self.kill()
        time.sleep(0.5)
        shutil.rmtree(self.profile, ignore_errors=True)

    def wait(self, script, seconds=120):
        """Until the expression is true; its value."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.evaluate(script)
            if value:
                return value
            time.sleep(0.2)
        raise TimeoutError(script + " is " + repr(value) + "; the page: " + str(self.evaluate("document.body.innerText")))


class Chromium(Browser):
    name = "chromium"

    def start(self):
        port = free_port()
        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors",
             "--remote-allow-origins=*", "--remote-debugging-port=%d" % port, "--user-data-dir=" + self.profile,
             "--disable-dev-shm-usage", "--lang=" + self.language, "--accept-lang=" + self.language, "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        for _ in range(300):
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/json" % port) as answer:
                    pages = [page for page in json.load(answer) if page["type"] == "page"]
                if pages:
                    break
            except OSError:
                pass
            time.sleep(0.1)
        self.socket = websocket.create_connection(pages[0]["webSocketDebuggerUrl"], timeout=120)
        self.number = 0
        version = self.call("Browser.getVersion")["product"].split("/")[1]
        self.version = "Chromium " + version
        self.call("Page.enable")
        self.call("DOM.enable")
        self.call("Emulation.setDeviceMetricsOverride",
                  width=WIDTH, height=HEIGHT, deviceScaleFactor=SCALE, mobile=True)
        self.call("Emulation.setTouchEmulationEnabled", enabled=True)
        self.call("Network.setUserAgentOverride", userAgent=PHONES["chromium"] % version, acceptLanguage=self.language)
        return self

    def call(self, method, **values):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": values}))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("method") == "Page.javascriptDialogOpening":
                # "Leave this page?"
                self.socket.send(json.dumps({"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}))
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + json.dumps(answer["error"]))
                return answer["result"]

    def open(self, url):
        self.call("Page.navigate", url=url)

    def reload(self):
        self.call("Page.reload")

    def evaluate(self, script):
        try:
            answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        except RuntimeError:
            return None
        return answer["result"].get("value")

    def choose(self, element, files):
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector="#" + element)["nodeId"]
        self.call("DOM.setFileInputFiles", files=files, nodeId=node)

    def dark(self, on):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def tree(self):
        """Role, name and value of each thing that a screen reader finds."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", ""), node.get("value", {}).get("value", ""))
                for node in nodes if not node.get("ignored")]


class Firefox(Browser):
    name = "firefox"

    def start(self):
        port = free_port()
        version = subprocess.run(["firefox-esr", "--version"], capture_output=True, text=True).stdout.split()[-1]
        self.version = "Firefox " + version
        number = version.replace("esr", "").split(".")[0] + ".0"
        with open(self.profile + "/user.js", "w") as file:
            for name, value in {
                "marionette.port": port, "general.useragent.override": PHONES["firefox"] % (number, number, number),
                "dom.w3c_touch_events.enabled": 1, "intl.accept_languages": self.language,
                "browser.shell.checkDefaultBrowser": False, "dom.disable_beforeunload": True,
                "browser.sessionstore.resume_from_crash": False, "toolkit.startup.max_resumed_crashes": -1,
                "layout.css.devPixelsPerPx": str(SCALE), "browser.startup.homepage_override.mstone": "ignore",
                "datareporting.policy.dataSubmissionEnabled": False, "app.update.enabled": False,
            }.items():
                file.write("user_pref(%s, %s);\n" % (json.dumps(name), json.dumps(value)))
        self.process = subprocess.Popen(
            ["firefox-esr", "--headless", "--marionette", "--no-remote", "--profile", self.profile, "--width", str(WIDTH * SCALE),
             "--height", str(HEIGHT * SCALE), "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "HOME": self.profile, "MOZ_CRASHREPORTER_DISABLE": "1"})
        for _ in range(600):
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=300)
                break
            except OSError:
                time.sleep(0.1)
        self.rest, self.number = b"", 0
        self._packet()
        self.call("WebDriver:NewSession", acceptInsecureCerts=True)
        return self

    def _packet(self):
        while b":" not in self.rest:
            self._more()
        length, self.rest = self.rest.split(b":", 1)
        while len(self.rest) < int(length):
            self._more()
        packet, self.rest = self.rest[:int(length)], self.rest[int(length):]
        return json.loads(packet)

    def _more(self):
        got = self.socket.recv(1 << 16)
        if not got:
            raise ConnectionError("Firefox has gone")
        self.rest += got

    def call(self, method, **values):
        self.number += 1
        packet = json.dumps([0, self.number, method, values]).encode()
        self.socket.sendall(b"%d:" % len(packet) + packet)
        while True:
            kind, number, error, result = self._packet()
            if kind == 1 and number == self.number:
                if error:
                    raise RuntimeError(method + ": " + error["message"])
                return result

    def open(self, url):
        self.call("WebDriver:Navigate", url=url)

    def reload(self):
        self.call("WebDriver:Refresh")

    def evaluate(self, script):
        try:
            return self.call("WebDriver:ExecuteScript", script="return " + script, args=[], newSandbox=True, sandbox=None)["value"]
        except RuntimeError:
            return None

    def choose(self, element, files):
        found = self.call("WebDriver:FindElement", using="css selector", value="#" + element)["value"]
        identity = list(found.values())[0]
        self.call("WebDriver:ElementSendKeys", id=identity, text="\n".join(files))

    def picture(self):
        return base64.b64decode(self.call("WebDriver:TakeScreenshot", full=False, hash=False)["value"])


BROWSERS = {"chromium": Chromium, "firefox": Firefox}
