"""What starts `pathcast-far` on other systems starts it with options that it has."""

from __future__ import annotations

import re
import subprocess

import pytest
from conftest import ROOT

# what the init systems bring along, as far as the scripts use it
UCI = r"""
config_load() { [ "$1" = pathcast-far ]; }
config_get() { eval "$1=\${UCI_$3:-\${4:-}}"; }
config_get_bool() { config_get "$@"; }
config_list_foreach() { eval "set -- \"$3\" \"$4\" \${UCI_$2:-}"; f=$1 o=$2; shift 2; for i; do $f "$i" "$o"; done; }
user_exists() { false; }
group_add_next() { echo 32768; }
user_add() { echo "user $*"; }
chown() { echo "chown $*"; }
procd_open_instance() { :; }
procd_close_instance() { :; }
procd_set_param() { case $1 in command) procd_append_param "$@" ;; *) echo "$*" ;; esac; }
procd_append_param() { shift; for word; do echo "word $word"; done; }
"""
OPENRC = r"""
checkpath() { echo "checkpath $*"; for place; do :; done; case $1 in --directory) mkdir "$place" ;; esac; }
"""


def configured(text):
    """The shell's variables of a UCI file, its comments taken as given too."""
    found = {}
    for line in text.splitlines():
        words = line.lstrip("#").replace("'", "").split()
        if words[:1] == ["option"]:
            found[f"UCI_{words[1]}"] = words[2]
        elif words[:1] == ["list"]:
            found[f"UCI_{words[1]}"] = " ".join(filter(None, [found.get(f"UCI_{words[1]}"), words[2]]))
    return found


def test_procd(far, tmp_path):
    script, config = (ROOT / "packaging" / "openwrt" / f"pathcast-far.{end}" for end in ("init", "config"))
    keys = tmp_path / "etc" / "keys"
    given = {**configured(config.read_text()), "UCI_key_file": str(keys), "UCI_log": "1", "UCI_bind": "127.0.0.1"}
    text = f"{UCI}. {script}\nPROG={far}\nstart_service"
    done = subprocess.run(["sh", "-eu", "-c", text], env=given, capture_output=True, text=True, check=True)
    assert keys.stat().st_mode & 0o777 == 0o600
    words = [line.removeprefix("word ") for line in done.stdout.splitlines() if line.startswith("word ")]
    assert words[:3] == [far, "--key-file", str(keys)]
    assert {"--port", "--stamp-port", "--log", "--bind", "--announce", "--limit"} <= set(words)
    assert "user pathcast" in done.stdout.splitlines()
    assert refused(words)


@pytest.mark.parametrize("there", [True, False])
def test_openrc(far, tmp_path, there):
    script, config = (ROOT / "packaging" / "openrc" / f"pathcast-far.{end}" for end in ("initd", "confd"))
    keys = tmp_path / "a b" / "keys"
    if there:
        keys.parent.mkdir(mode=0o755)
    given = config.read_text().replace("#key_file=/etc/pathcast/keys", f"key_file='{keys}'").replace("#far", "far")
    # OpenRC evaluates the words, too
    text = f"{OPENRC}{given}\n. {script}\ncommand={far}\nstart_pre >&2\neval printf '%s\\\\n' $command $command_args"
    done = subprocess.run(["sh", "-eu", "-c", text], capture_output=True, text=True, check=True)
    assert keys.stat().st_mode & 0o777 == 0o600
    # one that is there, such as /etc, stays as it is
    made = [line for line in done.stderr.splitlines() if line.startswith("checkpath --directory")]
    assert made == ([] if there else [f"checkpath --directory --mode 0755 {keys.parent}"])
    words = done.stdout.splitlines()
    assert words[:3] == [far, "--key-file", str(keys)]
    assert {"--log", "--limit"} <= set(words)
    assert refused(words)


def test_scripts_name_no_option_that_there_is_not(far):
    there = set(re.findall(r"--[a-z-]+", subprocess.run([far, "--help"], capture_output=True, text=True).stdout))
    for name in ("openwrt/pathcast-far.init", "openrc/pathcast-far.initd", "openrc/pathcast-far.confd"):
        text = (ROOT / "packaging" / name).read_text()
        subprocess.run(["sh", "-n", "-c", text], check=True)
        # those of `checkpath` are OpenRC's
        lines = [line for line in text.splitlines() if "checkpath" not in line]
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", "\n".join(lines)))
        assert named, name
        assert named <= there, name


def refused(words):
    """Whether the program takes all these words, and not one more that it does not have, so that it does not listen."""
    wrong = subprocess.run([*words, "--nothing-such"], capture_output=True, text=True)
    return wrong.returncode == 2 and "No such option: --nothing-such" in wrong.stderr


def test_the_packages_make_the_users_of_their_services():
    debian = ROOT / "packaging" / "debian"
    made = {
        end: set(re.findall(r"^ +adduser .* (\S+)$", (debian / f"postinst{end}").read_text(), re.M))
        for end in ("", "-far")
    }
    assert made == {"": {"pathcast", "pathcast-watch"}, "-far": {"pathcast"}}
    rules = (debian / "user.sed").read_text()
    for unit, user in (("serve", "pathcast"), ("watch", "pathcast-watch"), ("web", "pathcast-watch")):
        text = (ROOT / "packaging" / f"pathcast-{unit}.service").read_text()
        told = subprocess.run(["sed", rules.replace("@USER@", user)], input=text, capture_output=True, text=True).stdout
        assert re.findall(r"^(?:DynamicUser|User)=.*$", told, re.M) == [f"User={user}"]
        changed = set(text.splitlines()) ^ set(told.splitlines())
        assert changed - {"DynamicUser=yes", f"User={user}"} == set()
