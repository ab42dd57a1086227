//! Privileged: a program under `run` is a process like any other: status, signals, user, and nothing left of it.

mod common;

use std::fs;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{World, until};
use pathcast_base::{Exit, Fault};
use pathcast_launch::{Launch, LaunchError, Live, end, remove, remove_endpoint};

/// Not a test: what [`Supervisor::start`] runs, this program a second time.
#[test]
fn supervisor() {
    let Ok(words) = std::env::var("PATHCAST_LAUNCH_TEST") else { return };
    let mut words = words.split('\u{1f}');
    let (id, options, directory) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
    let launch = Launch {
        id: id.into(),
        mptcp: options.contains('m'),
        control: options.contains('c').then(|| "reno".into()),
        paths: if options.contains('p') { vec!["10.8.2.1".parse().unwrap()] } else { vec![] },
        user: (!options.contains('s')).then(|| if options.contains('n') { "nobody" } else { "root" }.into()),
        steered: options.contains('t'),
        directory: directory.into(),
        ..Launch::new(words)
    };
    let code = launch.run().map_or_else(|e| e.status(), |outcome| outcome.status);
    std::process::exit(code);
}

/// Not what a killed earlier test has left.
fn own_id(id: &str) -> String {
    format!("{id}-{}", std::process::id())
}

struct Supervisor(Child, String);

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.0.kill(); // where a test failed
        let _ = self.0.wait();
        let _ = remove(&self.1);
    }
}

impl Supervisor {
    /// Another process in the client's namespace that runs `sh -c script`. Options: `m` Multipath TCP, `p` a path, `c`
    /// controller, `s` the user who called sudo, `n` nobody, `t` steered.
    fn start(world: &World, id: &str, options: &str, script: &str) -> Supervisor {
        let cgroup = Launch { id: own_id(id), ..Launch::new(["true"]) }.made().cgroups.remove(0);
        Supervisor(Supervisor::command(world, id, options, script).spawn().unwrap(), cgroup)
    }

    fn command(world: &World, id: &str, options: &str, script: &str) -> Command {
        let directory = world.directory.display().to_string();
        let words = [&own_id(id), options, &directory, "sh", "-c", script].join("\u{1f}");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &format!("{}c", world.name)]).arg(std::env::current_exe().unwrap());
        command.args(["--exact", "supervisor", "--nocapture", "--test-threads=1"]);
        // a group of its own, whose parent is in another, can be stopped
        command.env("PATHCAST_LAUNCH_TEST", words).stdout(Stdio::null()).process_group(0);
        command
    }

    fn kill(&self, signal: i32) {
        // SAFETY: a child of ours that was not waited for
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }

    fn status(&mut self) -> i32 {
        self.0.wait().unwrap().code().unwrap_or(-1)
    }
}

fn written(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))
}

fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with(['Z', 'X']))
}

/// Where a cgroup of ours is, if it is there.
fn cgroup(path: &str) -> Option<PathBuf> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = text.lines().find(|line| line.contains(" - cgroup2 ")).and_then(|l| l.split(' ').nth(4));
    mount.map(|m| PathBuf::from(format!("{m}{path}"))).filter(|d| d.exists())
}

/// Who is in a cgroup of ours.
fn members(path: &str) -> String {
    fs::read_to_string(cgroup(path).expect("it is there").join("cgroup.procs")).unwrap()
}

#[test]
fn exit_statuses_are_those_of_the_program() {
    let Some(world) = World::new("exit status") else { return };
    for (script, status) in
        [("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
    {
        for mptcp in [false, true] {
            let launch = Launch { mptcp, user: Some("root".into()), ..Launch::new(["sh", "-c", script]) };
            let made = launch.made();
            let outcome = world.run(launch).unwrap();
            assert_eq!((outcome.status, outcome.report.status), (status, status), "{script}");
            assert_eq!(cgroup(&made.cgroups[0]), None, "{script}");
            assert!(!remove(&made.cgroups[0]).unwrap(), "{script}: it is gone already");
        }
    }
}

#[test]
fn programs_that_cannot_be_run() {
    let Some(world) = World::new("no such program") else { return };
    let text = world.directory.join("text");
    fs::write(&text, "no program").unwrap();
    for (command, status) in
        [("/no/such/program", 127), ("no-such-program", 127), (text.to_str().unwrap(), 126), ("/", 126)]
    {
        let launch = Launch { mptcp: true, user: Some("root".into()), ..Launch::new([command]) };
        let made = launch.made();
        let error = world.run(launch).unwrap_err();
        assert_eq!(error.status(), status, "{error}");
        assert!(matches!(error, LaunchError::Command { .. }) && error.to_string().starts_with(command), "{error}");
        assert_eq!(cgroup(&made.cgroups[0]), None, "{command}");
    }
    let error = Launch { control: Some("nosuch".into()), ..Launch::new(["true"]) }.run().unwrap_err();
    assert_eq!((error.exit(), error.status(), error.code()), (Exit::Usage, 2, "unknown-control"), "{error}");
    let error = Launch { user: Some("nosuchuser".into()), ..Launch::new(["true"]) }.run().unwrap_err();
    assert_eq!(error.exit(), Exit::Usage, "{error}");
    let error = Launch { paths: vec!["10.8.1.1".parse().unwrap()], ..Launch::new(["true"]) }.run().unwrap_err();
    assert_eq!(error.exit(), Exit::Usage, "{error}");
    assert_eq!(Launch::new([""]).run().unwrap_err().exit(), Exit::Usage);
    assert_eq!(Launch { id: "a/../b".into(), ..Launch::new(["true"]) }.run().unwrap_err().exit(), Exit::Usage);
}

#[test]
fn the_program_is_not_root() {
    let Some(world) = World::new("user") else { return };
    let Some(client) = world.client("user") else { return };
    // whatever the umask
    let open = Command::new("chmod").args(["-R", "a+rwX"]).arg(&world.directory).status().unwrap();
    assert!(open.success());
    let launch = Launch { user: Some("nobody".into()), mptcp: true, ..world.launch("ids", &[&client, "ids"]) };
    let outcome = world.run(launch).unwrap();
    let of = |flag: &str| {
        let out = Command::new("id").args([flag, "nobody"]).output().unwrap();
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    let (uid, gid) = (of("-u"), of("-g"));
    let groups = of("-G").split_whitespace().count();
    assert_eq!(world.output("ids"), format!("{uid} {uid} {gid} {groups}\n"));
    assert_eq!((outcome.status, outcome.report.user.as_str()), (0, "nobody"));
    assert!(outcome.report.notes.is_empty(), "{:?}", outcome.report.notes);
    let launch = Launch { user: Some("nobody".into()), ..world.launch("env", &["sh", "-c", "echo $USER $HOME"]) };
    world.run(launch).unwrap();
    assert!(world.output("env").starts_with("nobody /"), "{}", world.output("env"));
    // no_new_privs stays off, so that sudo and ping go on working
    let launch = Launch { mptcp: true, ..world.launch("nnp", &["grep", "NoNewPrivs", "/proc/self/status"]) };
    let outcome = world.run(launch).unwrap();
    assert_eq!(world.output("nnp"), "NoNewPrivs:\t0\n");
    assert!(outcome.report.notes.iter().any(|n| n.contains("as root")), "{:?}", outcome.report.notes);
    // who called sudo
    let out = world.directory.join("sudo");
    let mut command = Supervisor::command(&world, "sudo", "s", &format!("id -u > {}", out.display()));
    command.env("SUDO_UID", &uid).env("SUDO_GID", &gid);
    assert_eq!(Supervisor(command.spawn().unwrap(), String::new()).status(), 0);
    assert_eq!(fs::read_to_string(out).unwrap().trim(), uid);
}

#[test]
fn a_run_that_is_called_off_starts_nothing_and_leaves_nothing() {
    let Some(world) = World::new("called-off") else { return };
    let started = world.directory.join("started");
    let id = own_id("called-off");
    let launch =
        Launch { id: id.clone(), mptcp: true, ..Launch::new(["touch".into(), started.clone().into_os_string()]) };
    assert!(launch.run_unless(|| true, |_| {}).unwrap().is_none());
    assert!(!started.exists());
    let cgroup = launch.made().cgroups.remove(0);
    assert!(!remove(&cgroup).unwrap(), "the cgroup is still there");
    assert_eq!(launch.run_unless(|| false, |_| {}).unwrap().unwrap().status, 0);
    assert!(started.exists());
}

#[test]
fn signals_reach_the_program() {
    let Some(world) = World::new("signals") else { return };
    let out = world.directory.join("signals");
    for (name, number) in [
        ("HUP", libc::SIGHUP),
        ("INT", libc::SIGINT),
        ("TERM", libc::SIGTERM),
        ("WINCH", libc::SIGWINCH),
        ("USR1", libc::SIGUSR1),
    ] {
        let _ = fs::remove_file(&out);
        let script = format!(
            "trap 'echo {name} >> {o}; exit 40' {name}; echo ready >> {o}; while :; do sleep 0.05; done",
            o = out.display()
        );
        let mut supervisor = Supervisor::start(&world, "signals", "cm", &script);
        until("start", || written(&out));
        supervisor.kill(number);
        assert_eq!(supervisor.status(), 40, "{name}");
        assert_eq!(fs::read_to_string(&out).unwrap(), format!("ready\n{name}\n"));
    }
    let _ = fs::remove_file(&out);
    let script = format!("echo ready > {}; exec sleep 30", out.display());
    let mut supervisor = Supervisor::start(&world, "signals", "", &script);
    until("start", || written(&out));
    supervisor.kill(libc::SIGTERM);
    assert_eq!(supervisor.status(), 143);
}

/// timeout(1) tells its child, and then its group; a shell without job control has its children in its own.
#[test]
fn a_signal_from_our_own_group_reaches_the_program_once() {
    let Some(world) = World::new("signals of the group") else { return };
    let Some(client) = world.client("signals of the group") else { return };
    let out = world.directory.join("terms");
    let script = format!("exec {client} terms > {}", out.display());
    let stands = format!("while [ ! -s {} ]; do sleep 0.05; done", out.display());
    for (words, status) in [
        (format!("timeout -s TERM 2 \"$@\"; {stands}"), 0),
        (format!("\"$@\" & {stands}; kill $!; wait $!"), 0),
        (format!("trap : TERM; \"$@\" & {stands}; kill 0; wait $!; wait $!"), 0),
        (format!("\"$@\" & {stands}; sh -c \"kill $!\"; wait $!"), 0), // the sender is gone
    ] {
        let _ = fs::remove_file(&out);
        let inner = Supervisor::command(&world, "group", "", &script);
        let mut outer = Command::new("sh");
        outer.args(["-c", &words, "sh"]).arg(inner.get_program()).args(inner.get_args());
        outer.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        outer.stdout(Stdio::null()).process_group(0);
        let mut outer = Supervisor(outer.spawn().unwrap(), String::new());
        assert_eq!(outer.status(), status, "{words}");
        assert_eq!(fs::read_to_string(&out).unwrap(), "\nx", "{words}");
    }
}

#[test]
fn stopped_and_continued_with_the_program() {
    let Some(world) = World::new("job control") else { return };
    let (out, over) = (world.directory.join("pid"), world.directory.join("over"));
    let script = format!("echo $$ > {}; while [ ! -e {} ]; do sleep 0.05; done; exit 3", out.display(), over.display());
    let mut supervisor = Supervisor::start(&world, "stop", "m", &script);
    let pid: i32 = until("program", || written(&out)).trim().parse().unwrap();
    let state = |pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next())
    };
    let ours = supervisor.0.id() as i32;
    supervisor.kill(libc::SIGTSTP);
    until("stop of the program", || (state(pid) == Some('T')).then_some(()));
    until("stop of the supervisor", || (state(ours) == Some('T')).then_some(()));
    sleep(Duration::from_millis(200));
    supervisor.kill(libc::SIGCONT);
    until("going on", || (state(pid) != Some('T')).then_some(()));
    fs::write(over, "").unwrap();
    assert_eq!(supervisor.status(), 3);
}

#[test]
fn a_killed_supervisor_leaves_what_remove_removes() {
    let Some(world) = World::new("kill -9") else { return };
    let Some(client) = world.client("kill -9") else { return };
    let (pids, late) = (world.directory.join("pids"), world.directory.join("late"));
    let script = format!(
        "sleep 0.3 & echo $$ > {}; while [ ! -e {}.go ]; do sleep 0.05; done; {client} listener > {}",
        pids.display(),
        late.display(),
        late.display()
    );
    let mut supervisor = Supervisor::start(&world, "killed", "cmp", &script);
    let pid: i32 = until("program", || written(&pids)).trim().parse().unwrap();
    supervisor.kill(libc::SIGKILL);
    supervisor.0.wait().unwrap();
    assert!(alive(pid), "the program goes on");
    let own = Launch { id: own_id("killed"), ..Launch::new(["true"]) }.made();
    let directory = cgroup(&own.cgroups[0]).expect("it is left");
    let members = fs::read_to_string(directory.join("cgroup.procs")).unwrap();
    assert!(world.ip("mptcp endpoint show").contains("10.8.2.1"));
    assert!(remove(&own.cgroups[0]).unwrap());
    assert!(!directory.exists() && !remove(&own.cgroups[0]).unwrap());
    let files = world.directory.clone();
    let removed = world.inside("c", move || remove_endpoint("10.8.2.1".parse().unwrap(), &files).unwrap());
    assert!(removed.join().unwrap());
    assert_eq!(world.ip("mptcp endpoint show"), "");
    assert!(alive(pid), "the program still goes on");
    fs::write(world.directory.join("late.go"), "").unwrap();
    assert_eq!(until("late socket", || written(&late)), "262 0 0\n", "the socket maker lives as long as the program");
    for member in members.lines() {
        let member = member.parse().unwrap();
        until("end of the program and of the socket maker", || (!alive(member)).then_some(()));
    }
}

#[test]
fn a_steered_program_ends_with_its_killed_supervisor() {
    let Some(world) = World::new("steered") else { return };
    fs::set_permissions(&world.directory, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    for options in ["t", "cmpt", "nt", "mnt"] {
        let pids = world.directory.join(format!("pid-{options}"));
        let script = format!("echo $$ > {}; exec sleep 300", pids.display());
        let mut supervisor = Supervisor::start(&world, &format!("with-{options}"), options, &script);
        let pid: i32 = until("program", || written(&pids)).trim().parse().unwrap();
        assert!(alive(pid), "{options}");
        supervisor.kill(libc::SIGKILL);
        supervisor.0.wait().unwrap();
        until("end of the program", || (!alive(pid)).then_some(()));
    }
}

/// A shell and two that it has started, one of which does not end by SIGTERM; their numbers stand in the file.
fn family(pids: &Path, last: &str) -> String {
    let child = |does: &str| format!("sh -c '{does} echo $$ >> {}; exec sleep 300' >/dev/null 2>&1 & ", pids.display());
    let whole = format!("while [ $(wc -l < {}) -lt 2 ]; do sleep 0.05; done; {last}", pids.display());
    [&format!("> {}; ", pids.display()), &child(""), &child("trap \"\" TERM;"), &whole as &str].concat()
}

fn children(pids: &Path) -> Option<Vec<i32>> {
    written(pids)
        .filter(|text| text.lines().count() == 2)
        .map(|text| text.lines().map(|l| l.parse().unwrap()).collect())
}

#[test]
fn what_a_steered_program_has_started_ends_with_its_killed_supervisor() {
    let Some(world) = World::new("steered children") else { return };
    fs::set_permissions(&world.directory, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    // without a socket maker the next start ends it, by the cgroup's name
    for (options, by_itself) in [("cmpt", true), ("mnt", true), ("ct", false), ("cnt", false)] {
        let pids = world.directory.join(format!("family-{options}"));
        let mut supervisor = Supervisor::start(&world, &format!("all-{options}"), options, &family(&pids, "wait"));
        let found = until("children", || children(&pids));
        assert!(found.iter().all(|&pid| alive(pid)), "{options}");
        supervisor.kill(libc::SIGKILL);
        supervisor.0.wait().unwrap();
        if !by_itself {
            assert!(found.iter().all(|&pid| alive(pid)), "{options}");
            assert!(end(&supervisor.1).unwrap() >= 2, "{options}");
        }
        // who is ending leaves the cgroup's list a moment before it is seen to have ended
        until("end of the children", || found.iter().all(|&pid| !alive(pid)).then_some(()));
        // the socket maker is the last of them, and ends itself
        until("empty cgroup", || members(&supervisor.1).is_empty().then_some(()));
        assert_eq!(end(&supervisor.1).unwrap(), 0, "{options}");
        assert!(remove(&supervisor.1).unwrap(), "{options}");
    }
    assert!(matches!(end("/user.slice"), Err(LaunchError::Argument(_))));
    assert_eq!(end("/pathcast-that-never-was").unwrap(), 0);
}

#[test]
fn a_steered_run_leaves_nothing_in_the_background() {
    let Some(world) = World::new("steered end") else { return };
    for (n, (mptcp, killed)) in
        [(true, None), (false, None), (true, Some(false)), (true, Some(true))].into_iter().enumerate()
    {
        let pids = world.directory.join(format!("end-{n}"));
        let live = Live::default();
        let launch = Launch {
            mptcp,
            steered: true,
            control: Some("reno".into()),
            user: Some("root".into()),
            live: live.clone(),
            ..Launch::new(["sh", "-c", &family(&pids, if killed.is_some() { "wait" } else { "exit 5" })])
        };
        let made = launch.made();
        let run = world.inside("c", move || launch.run());
        let found = until("children", || children(&pids));
        match killed {
            Some(true) => assert!(live.kill()),
            Some(false) => assert!(live.end()),
            None => {}
        }
        let outcome = run.join().unwrap().unwrap();
        let status = match killed {
            Some(true) => 128 + libc::SIGKILL,
            Some(false) => 128 + libc::SIGTERM,
            None => 5,
        };
        assert_eq!(outcome.status, status);
        // one that is killed is in no cgroup's list from its first step of ending on, and runs nothing of its own any more
        until("end of the children", || found.iter().all(|&pid| !alive(pid)).then_some(()));
        assert_eq!(cgroup(&made.cgroups[0]), None);
        let notes = &outcome.report.notes;
        assert_eq!(notes.iter().any(|n| n.contains("was ended")), killed != Some(true), "{notes:?}");
        assert!(!notes.iter().any(|n| n.contains("go on")), "{notes:?}");
    }
}

#[test]
fn what_is_left_in_the_background_goes_on() {
    let Some(world) = World::new("background") else { return };
    let Some(client) = world.client("background") else { return };
    let (late, over) = (world.directory.join("late"), world.directory.join("over"));
    let wait = format!("while [ ! -e {} ]; do sleep 0.1; done", over.display());
    let script = format!("({wait}; {client} listener > {}) >/dev/null 2>&1 & exit 5", late.display());
    let launch = Launch {
        mptcp: true,
        control: Some("reno".into()),
        user: Some("root".into()),
        ..Launch::new(["sh", "-c", &script])
    };
    let made = launch.made();
    let outcome = world.run(launch).unwrap(); // the program's end is the run's: what is left waits for us
    fs::write(over, "").unwrap();
    assert_eq!(outcome.status, 5);
    assert_eq!(cgroup(&made.cgroups[0]), None);
    assert!(outcome.report.notes.iter().any(|n| n.contains("in the background")), "{:?}", outcome.report.notes);
    assert_eq!(until("late socket", || written(&late)), "262 0 0\n");
}

#[test]
fn streams_are_ours_and_pipes_end() {
    let Some(world) = World::new("streams") else { return };
    // what goes on has three minutes to live, or until we have seen the end of the pipes
    let over = world.directory.join("over");
    let left = format!("for i in $(seq 1800); do [ -e {} ] && break; sleep 0.1; done", over.display());
    let mut command =
        Supervisor::command(&world, "streams", "m", &format!("cat; echo bad >&2; ({left}) >/dev/null 2>&1 &"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"good\n").unwrap();
    let start = Instant::now();
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(out.ends_with("good\n") && err.ends_with("bad\n"), "{out:?} {err:?}");
    assert!(start.elapsed() < Duration::from_secs(150), "the socket maker must not hold the pipes open");
    fs::write(over, "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
