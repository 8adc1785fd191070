//! A pseudo-terminal and the screen that a person would see in it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::sync::watch;
use tokio::time::timeout;

/// Open flag: the terminal does not become this process's controlling terminal.
const NO_CTTY: i32 = 0o400;
/// Longest time to wait; far longer than anything takes.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
const ROWS: u16 = 24;

/// A program in a terminal; killed when dropped.
pub(crate) struct LiveTerminal {
    child: Child,
    master: OwnedFd,
    seen: Arc<Mutex<TerminalOutput>>,
    /// Notified when more output has arrived.
    more: watch::Receiver<()>,
}

struct TerminalOutput {
    screen: vt100::Parser,
    /// All output so far.
    bytes: Vec<u8>,
}

impl LiveTerminal {
    /// Starts a program in a terminal of this width, as a shell would: the terminal is its controlling terminal, and
    /// Ctrl-C and resizing send it signals.
    pub(crate) fn start(program: &Command, columns: u16, env: &[(&str, &str)]) -> LiveTerminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = OpenOptions::new().read(true).write(true).custom_flags(NO_CTTY).open(name).unwrap();
        resize(&master, columns);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait"]).arg(program.get_program()).args(program.get_args());
        command.env_remove("KUBECONFIG").env_remove("NO_COLOR").env("HOME", "/nowhere");
        command.env("TERM", "xterm-256color").envs(env.iter().copied());
        let end = || Stdio::from(slave.try_clone().unwrap());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let screen = vt100::Parser::new(some(ROWS), some(columns), 0);
        let seen = Arc::new(Mutex::new(TerminalOutput { screen, bytes: Vec::new() }));
        let (tells, more) = watch::channel(());
        let (mut output, told) = (File::from(master.try_clone().unwrap()), seen.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Reading from a terminal fails once its last program has exited.
            while let Ok(read @ 1..) = output.read(&mut buffer) {
                let mut seen = told.lock().unwrap();
                seen.screen.process(&buffer[..read]);
                seen.bytes.extend(&buffer[..read]);
                drop(seen);
                tells.send_replace(());
            }
        });
        LiveTerminal { child, master, seen, more }
    }

    /// Resizes the terminal, as when a window is dragged.
    pub(crate) fn resize(&self, columns: u16) {
        self.seen.lock().unwrap().screen.screen_mut().set_size(some(ROWS), some(columns));
        resize(&self.master, columns);
    }

    /// Returns the rows that are currently not empty.
    pub(crate) fn rows(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        let screen = seen.screen.screen();
        let (_, columns) = screen.size();
        screen
            .rows(0, columns.get())
            .map(|row| row.trim_end().to_owned())
            .filter(|row| !row.is_empty())
            .collect()
    }

    /// Returns `true` if no row wraps into the next.
    pub(crate) fn is_unbroken(&self) -> bool {
        let seen = self.seen.lock().unwrap();
        (0..ROWS).all(|row| !seen.screen.screen().row_wrapped(row))
    }

    /// Returns all output so far.
    pub(crate) fn sent(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().bytes).into_owned()
    }

    /// Waits until the rows satisfy `is` and returns them.
    pub(crate) async fn until(&self, what: &str, is: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut more = self.more.clone();
        let seen = async {
            loop {
                more.mark_unchanged();
                let rows = self.rows();
                // No more output arrives once the program has exited.
                if is(&rows) || more.changed().await.is_err() {
                    return self.rows();
                }
            }
        };
        let rows = timeout(TEST_TIMEOUT, seen).await.unwrap_or_else(|_| self.rows());
        assert!(is(&rows), "not seen: {what}\n{}", rows.join("\n"));
        rows
    }

    /// Types these keys.
    pub(crate) fn types(&self, keys: &str) {
        File::from(self.master.as_fd().try_clone_to_owned().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the exit status, once all output has been read.
    pub(crate) async fn end(&mut self) -> ExitStatus {
        // Reading ends when the last program that holds the terminal has.
        let read = async { while self.more.changed().await.is_ok() {} };
        let ended = timeout(TEST_TIMEOUT, read).await;
        assert!(ended.is_ok(), "it runs on\n{}", self.rows().join("\n"));
        self.child.wait().unwrap()
    }
}

impl Drop for LiveTerminal {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn some(size: u16) -> NonZero<u16> {
    NonZero::new(size).unwrap()
}

fn resize(master: &OwnedFd, columns: u16) {
    let size = Winsize { ws_row: ROWS, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}
