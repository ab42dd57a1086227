"""What `watch --alert-post` and `--alert-mail` start for each alert: it reads one as JSON from its standard input, and
posts it to an address, or mails its sentence by sendmail(1)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import formatdate
from http.client import HTTPException
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from pathcast.errors import missing, usage

# how long the other end may take [s]
_PATIENCE_S = 30.0
_ADDRESS = re.compile(r"[^\s,;<>\"'|-][^\s,;<>\"'|]*")
_SENDMAIL = ("/usr/sbin/sendmail", "/usr/lib/sendmail")


def post(url: str) -> list[str]:
    """The program that posts to `url`. Refuses what is no address."""
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound or not url.isascii() or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise usage(f"--alert-post `{url}` is no address", "write it as https://example.org/hook")
    return _program("post", url)


def mail(address: str) -> list[str]:
    """The program that mails to `address`. Refuses what is none, and where there is no sendmail."""
    if not _ADDRESS.fullmatch(address):
        raise usage(f"--alert-mail `{address}` is no address", "write it as ann@example.org; one only")
    _sendmail()
    return _program("mail", address)


def _program(kind: str, to: str) -> list[str]:
    return [sys.executable, "-P", "-m", "pathcast.service.told", kind, to]


def _sendmail() -> str:
    for name in ("sendmail", *_SENDMAIL):
        if found := shutil.which(name):
            return found
    raise missing("there is no sendmail(1)", "install a mail system, for example Debian's msmtp-mta")


def letter(document: dict[str, object], to: str) -> bytes:
    """An alert as a message."""
    text = str(document.get("text", ""))
    made = EmailMessage()
    made["To"], made["Date"], made["Auto-Submitted"] = to, formatdate(localtime=True), "auto-generated"
    made["Subject"] = "pathcast: " + " ".join(text.split())[:200]
    made.set_content(text + "\n\n" + json.dumps(document, indent=1) + "\n")
    return made.as_bytes()


def main(words: Sequence[str]) -> int:
    """The program: 1, with a word on standard error, where it was not taken."""
    kind, to = words
    text = sys.stdin.buffer.read()
    if kind == "mail":
        return subprocess.run([_sendmail(), "-i", "--", to], input=letter(json.loads(text), to), check=False).returncode
    head = {"Content-Type": "application/json", "User-Agent": "pathcast"}
    try:
        with urlopen(Request(to, text, head, method="POST"), timeout=_PATIENCE_S):
            return 0
    except HTTPError as error:
        why = f"it answers {error.code} {error.reason}"
    except (OSError, HTTPException) as error:
        why = str(getattr(error, "reason", error))
    print(f"{urlsplit(to).hostname}: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
