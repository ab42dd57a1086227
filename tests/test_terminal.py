"""`pathcast run --user` at root's terminal: the program cannot type into it, and all else works as under `su`."""

from __future__ import annotations

import fcntl
import os
import platform
import pty
import random
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

import pytest
from conftest import COMMAND, PATIENCE_S

pytestmark = pytest.mark.privileged

PROMPT = "ready> "


class Screen:
    """A terminal with a program on it, as a person has it before them."""

    def __init__(self, *command):
        self.text, self._seen = "", 0
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1=PROMPT, TERM="dumb", HISTFILE="", LC_ALL="C")  # "Stopped"
            os.execvp(command[0], [str(word) for word in command])
        self.resize(24, 200)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def see(self, pattern):
        """Waits until the pattern comes after what was seen before; what it matched."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := re.compile(pattern).search(self.text, self._seen)):
            assert self._read(deadline), f"no {pattern!r} in {self.text[self._seen :]!r} of {self.text!r}"
        self._seen = found.end()
        return found

    def _read(self, deadline):
        if not select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # nobody has it any more
            return False
        self.text += data.decode(errors="replace")
        return bool(data)

    def jobs(self):
        """The states of what it has started, without what those have."""
        pids = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return "".join(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in pids)

    def end(self):
        """The exit status."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            pass
        pid, self.pid = self.pid, 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def close(self):
        os.close(self.fd)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


@pytest.fixture
def screen(site, nobody):
    """Puts a program on a terminal, where the user without rights finds the interpreter."""
    prefix = nobody[: nobody.index("setpriv")]
    screens = []

    def on(*command):
        screens.append(Screen(*prefix, *command))
        return screens[-1]

    yield on
    for one in screens:
        one.close()


@pytest.fixture
def run(screen):
    """`pathcast run --user nobody -- COMMAND` on a terminal of its own."""
    return lambda *command: screen(COMMAND, "run", "--user", "nobody", "--", *command)


@pytest.fixture
def shell(screen):
    """Root's shell with job control, in which `NOBODY COMMAND` runs one as the user without rights."""
    one = screen("bash", "--norc", "--noprofile", "-i")
    one.see(PROMPT)
    one.type(f'NOBODY() {{ {COMMAND} run --user nobody -- "$@"; }}\n')
    one.see(PROMPT)
    return one


# TIOCSTI on every descriptor and the controlling terminal, also after taking that, also through the 32-bit calls
PUSH = """
import ctypes, fcntl, mmap, os, sys, termios

def native(fd, byte):
    fcntl.ioctl(fd, termios.TIOCSTI, byte)

def compat(fd, byte):
    # ioctl of i386, third argument in edx: push rbx; mov eax, 54; mov ebx, edi; mov ecx, esi; int 0x80; pop rbx; ret
    code = bytes.fromhex("53 b8 36000000 89fb 89f1 cd80 5b c3") + byte
    low = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40  # MAP_32BIT
    memory = mmap.mmap(-1, 4096, low, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int)(place)
    result = call(fd, termios.TIOCSTI, place + len(code) - 1)
    if result < 0:
        raise OSError(-result, os.strerror(-result))

def attempts(way):
    fds = list(range(10))
    try:
        fds.append(os.open("/dev/tty", os.O_RDWR))
    except OSError:
        pass
    for fd in fds:
        for take in (None, 0, 1):
            try:
                if take is not None:
                    fcntl.ioctl(fd, termios.TIOCSCTTY, take)
                for byte in b"pushed" + bytes([10]):
                    way(fd, bytes([byte]))
            except OSError:
                pass

ways = {"native": native, "compat": compat}
if os.fork() == 0:  # which dies where there are no 32-bit calls
    attempts(ways[sys.argv[1]])
    os._exit(0)
os.wait()
"""
WAYS = ["native", "compat"] if platform.machine() == "x86_64" else ["native"]


STREAMS = ["", "</dev/null", "</dev/null >/dev/null 2>&1", "5<>/dev/tty </dev/null"]


def pushes(screen, tmp_path, user, way, streams):
    """With which streams a shell of root's finds anything to read after a program that tried."""
    (tmp_path / "push.py").write_text(PUSH)
    attack = f'{COMMAND} run --user {user} -- {sys.executable} -c "$(cat {tmp_path}/push.py)" {way}'
    read = 'if read -t 1 line; then echo "got: $line"; else echo nothing; fi'
    tried = [(of, screen("bash", "-c", f"{attack} {of}\n{read}")) for of in streams]  # at once
    found = [of for of, one in tried if one.see("got: pushed|nothing\r\n")[0] == "got: pushed"]
    assert [one.end() for _, one in tried] == [0] * len(streams)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_a_program_cannot_type_into_roots_terminal(screen, tmp_path, way):
    assert pushes(screen, tmp_path, "nobody", way, STREAMS) == []


def test_as_root_it_can_where_the_kernel_lets_it(screen, tmp_path):
    """So what is tried above is an attack."""
    setting = Path("/proc/sys/dev/tty/legacy_tiocsti")  # Linux 6.2
    can = not setting.exists() or setting.read_text() == "1\n"
    assert pushes(screen, tmp_path, "root", "native", [""]) == ([""] if can else [])


def test_with_no_terminal_among_its_streams_it_has_none_but_the_keys(screen):
    """Of a terminal that is opened by its name, a process that it leaves behind could go on reading."""
    child = 'trap "echo child; exit" INT; echo begin; while :; do sleep 0.1; done'
    script = f"(: </dev/tty); trap : INT; sh -c '{child}'; echo parent"
    streams = "</dev/null 2>&1 | (trap '' INT; exec cat)"
    one = screen("bash", "-c", f'{COMMAND} run --user nobody -- sh -c "$0" {streams}', script)
    one.see("/dev/tty: No such device or address")
    one.see("begin")
    one.type("\x03")
    one.see("child")
    one.see("parent")
    one.end()


def test_lines_go_both_ways_and_the_status_is_the_programs(run):
    one = run("sh", "-c", "echo begin; cat; echo end; exit 7")
    one.see("begin\r\n")
    one.type("hello\n")
    one.see("hello\r\nhello\r\n")  # the echo, and what came back
    one.type("\x04")
    one.see("end\r\n")
    assert one.end() == 7


@pytest.mark.parametrize(("key", "number"), [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_keys_that_interrupt_reach_the_program_and_its_children(run, key, number):
    child = 'trap "echo child; exit" INT QUIT; echo begin; while :; do sleep 0.1; done'
    one = run("sh", "-c", f"trap : INT QUIT; sh -c '{child}'; echo parent; exit 5")
    one.see("begin")
    one.type(key)
    one.see("child")
    one.see("parent")
    assert one.end() == 5
    one = run("sh", "-c", "ulimit -c 0; echo begin; exec sleep 60")
    one.see("begin")
    one.type(key)
    assert one.end() == 128 + number


def test_the_window_has_its_size_and_changes_it(run):
    show = "stty size; trap 'stty size; exit 0' WINCH; echo begin; while :; do sleep 0.1; done"
    one = run("sh", "-c", show)
    one.see("24 200")
    one.see("begin")
    one.resize(33, 101)
    one.see("33 101")
    assert one.end() == 0


def test_stopped_and_continued(shell, wait_for):
    shell.type("NOBODY sh -c 'echo begin; read line; echo got $line; read line; echo got $line'\n")
    shell.see("begin\r\n")
    shell.type("\x1a")
    shell.see("Stopped")
    shell.see(PROMPT)
    shell.type("fg\n")
    shell.see("sh -c.*\r\n|NOBODY.*\r\n|pathcast run.*\r\n")
    shell.type("one\n")
    shell.see("got one")
    shell.type("\x1a")
    shell.see("Stopped")
    shell.see(PROMPT)
    shell.type("bg\n")
    shell.see(PROMPT)
    assert wait_for(lambda: shell.jobs() == "T")  # as it reads
    shell.type("jobs\n")
    shell.see("Stopped")  # bash has heard of it, too: it continues none that it thinks is running
    shell.see(PROMPT)
    shell.type("fg\n")
    shell.see("sh -c.*\r\n|NOBODY.*\r\n|pathcast run.*\r\n")
    shell.type("two\n")
    shell.see("got two")
    shell.see(PROMPT)
    shell.type("echo status $?\n")
    shell.see("status 0")


def test_no_stop_and_no_continuing_is_lost(shell):
    """In the background the program stops as it reads, while the shell takes it to the foreground again."""
    chance = random.Random(1)
    shell.type("NOBODY sh -c 'echo begin; while read line; do echo got $line; done'\n")
    shell.see("begin\r\n")
    for number in range(150):
        shell.type("\x1a")
        shell.see("Stopped")
        shell.see(PROMPT)
        shell.type("bg\n")
        shell.see(PROMPT)
        time.sleep(chance.uniform(0, 0.004))
        shell.type("fg\n")
        shell.see("pathcast run.*\r\n")
        shell.type(f"{number}\n")
        # bash continues none that it thinks is running, also if it stops just then
        if shell.see(f"got {number}\r|Stopped")[0] == "Stopped":
            shell.see(f"{PROMPT}(?s:.*){PROMPT}")  # the number went to bash
            shell.type("fg\n")
            shell.see("pathcast run.*\r\n")
            shell.type(f"{number}\n")
            shell.see(f"got {number}\r")


def test_a_shell_in_it_has_job_control_of_its_own(shell):
    shell.type("NOBODY env PS1='inner> ' bash --norc --noprofile -i\n")
    shell.see("\ninner> ")
    shell.type("echo; echo up; cat\n")
    shell.see("\nup\r\n")  # readline loses what is typed ahead of it
    shell.type("hello\n")
    shell.see("hello\r\nhello\r\n")
    shell.type("\x1a")
    shell.see("Stopped")
    shell.see("inner> ")
    shell.type("fg\n")
    shell.see("\ncat\r\n")
    shell.type("again\n")
    shell.see("again\r\nagain\r\n")
    shell.type("\x03")
    shell.see("inner> ")
    shell.type("id -un; exit 4\n")
    shell.see("nobody\r\n")
    shell.see(PROMPT)
    shell.type("echo status $?\n")
    shell.see("status 4")


ASK = """
import termios
with open("/dev/tty", "r+b", buffering=0) as tty:
    old = termios.tcgetattr(tty)
    new = old[:]
    new[3] &= ~termios.ECHO
    termios.tcsetattr(tty, termios.TCSAFLUSH, new)
    tty.write(b"password: ")
    answer = tty.readline()
    termios.tcsetattr(tty, termios.TCSAFLUSH, old)
print("heard", answer)
"""


def test_a_password_is_asked_for_at_the_terminal_in_the_midst_of_pipes(screen):
    """As ssh does under rsync."""
    script = f"echo '{ASK}' | {COMMAND} run --user nobody -- {sys.executable} - | cat"
    one = screen("sh", "-c", script)
    one.see("password: ")
    one.type("xyzzy\n")
    one.see("heard b'xyzzy")
    assert one.text.count("xyzzy") == 1  # not echoed
    assert one.end() == 0
