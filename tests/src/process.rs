//! A program that a test started: it stops with the test, however the test ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{sleep, timeout};

type Order = (Command, mpsc::Sender<std::io::Result<Child>>);

/// Environment of servers written in Go: memory is there, processors are what all tests share.
pub(crate) fn relaxed_collector() -> [(String, String); 1] {
    [("GOGC".to_owned(), "400".to_owned())]
}

/// A running program with its log; killed when dropped.
pub struct LoggedProcess {
    name: String,
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    log: PathBuf,
    child: Child,
}

impl LoggedProcess {
    /// Starts `program`; both outputs are appended to `log`.
    pub fn start(
        name: &str,
        program: &Path,
        args: &[String],
        env: &[(String, String)],
        log: &Path,
    ) -> Result<Self> {
        let child = spawn(program, args, env, log).with_context(|| format!("failed to start {name}"))?;
        Ok(Self {
            name: name.to_owned(),
            program: program.to_owned(),
            args: args.to_vec(),
            env: env.to_vec(),
            log: log.to_owned(),
            child,
        })
    }

    /// Sends SIGTERM, as the kubelet does.
    pub fn terminate(&self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).with_context(|| format!("failed to terminate {}", self.name))
    }

    /// Sends SIGSTOP: the program is suspended.
    pub fn pause(&self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::STOP).with_context(|| format!("failed to stop {}", self.name))
    }

    /// Sends SIGCONT.
    pub fn resume(&self) -> Result<()> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::CONT).with_context(|| format!("failed to continue {}", self.name))
    }

    /// Sends SIGKILL and waits for the process.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill().with_context(|| format!("failed to kill {}", self.name))?;
        self.child.wait()?;
        Ok(())
    }

    /// Starts the same program again after it has ended.
    pub fn again(&mut self) -> Result<()> {
        if self.child.try_wait()?.is_none() {
            bail!("{} is still running", self.name);
        }
        self.child = spawn(&self.program, &self.args, &self.env, &self.log)?;
        Ok(())
    }

    /// Returns the exit status if the program has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    /// Waits until the program ends by itself.
    pub async fn end(&mut self, within: Duration) -> Result<ExitStatus> {
        let ended = async {
            loop {
                if let Some(status) = self.child.try_wait()? {
                    return Ok::<_, anyhow::Error>(status);
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        match timeout(within, ended).await {
            Ok(status) => status,
            Err(_) => Err(anyhow!("{} still runs {within:?} later\n{}", self.name, self.tail(40))),
        }
    }

    /// Returns the last `lines` lines of the log, for the message of a failed test.
    pub fn tail(&self, lines: usize) -> String {
        let text = self.output();
        let all: Vec<&str> = text.lines().collect();
        let from = all.len().saturating_sub(lines);
        format!("── {} ──\n{}", self.log.display(), all[from..].join("\n"))
    }

    /// Returns all output so far.
    pub fn output(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for LoggedProcess {
    fn drop(&mut self) {
        // A process that is already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn spawn(program: &Path, args: &[String], env: &[(String, String)], log: &Path) -> Result<Child> {
    let out = File::options().create(true).append(true).open(log)?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program).args(args);
    command.envs(env.iter().map(|(key, value)| (key, value)));
    command.stdin(std::process::Stdio::null()).stdout(out.try_clone()?).stderr(out);
    let (reply, child) = mpsc::channel();
    warden()
        .lock()
        .map_err(|_| anyhow!("the thread that starts programs is gone"))?
        .send((command, reply))?;
    child.recv()?.with_context(|| format!("failed to run setpriv {}", program.display()))
}

/// A thread that never ends and starts all programs. The kernel sends the death signal when the *thread* that forked
/// ends, and a test's thread ends long before its process.
fn warden() -> &'static Mutex<mpsc::Sender<Order>> {
    static WARDEN: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    WARDEN.get_or_init(|| {
        let (orders, inbox) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, reply) in inbox {
                // If the caller no longer waits for the answer, the child is dropped with it.
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(orders)
    })
}
