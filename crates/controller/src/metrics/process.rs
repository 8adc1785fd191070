//! Process metrics under their standard names. Linux only; empty elsewhere.

use std::fmt::Write;
use std::fs;

/// Clock ticks per second in `/proc`, the same on every architecture of Linux.
const CLOCK_TICKS_PER_SECOND: f64 = 100.0;

/// Lines of the text format.
pub(super) fn process_text() -> String {
    let read = |file: &str| fs::read_to_string(format!("/proc/{file}")).unwrap_or_default();
    let descriptors = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    format_lines(&read("self/stat"), &read("self/status"), &read("stat"), descriptors)
}

fn format_lines(own: &str, status: &str, system: &str, descriptors: Option<usize>) -> String {
    // The program's name is the second field, in brackets, and may contain any character.
    let fields: Vec<&str> =
        own.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok().map(|ticks| ticks / CLOCK_TICKS_PER_SECOND);
    let after = |text: &str, word: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(word))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let cpu = ticks(11).zip(ticks(12)).map(|(user, system)| user + system);
    let start = after(system, "btime").zip(ticks(19)).map(|(boot, since)| boot + since);
    let resident = after(status, "VmRSS:").map(|kib| kib * 1_024.0);
    let open = descriptors.map(|count| f64::from(u32::try_from(count).unwrap_or(u32::MAX)));
    let mut out = String::new();
    for (name, kind, help, value) in [
        ("cpu_seconds_total", "counter", "CPU time of the process, user and system.", cpu),
        ("open_fds", "gauge", "Open file descriptors of the process.", open),
        ("resident_memory_bytes", "gauge", "Resident memory of the process, in bytes.", resident),
        ("start_time_seconds", "gauge", "Start time of the process, in seconds since the Unix epoch.", start),
    ] {
        if let Some(value) = value {
            _ = writeln!(
                out,
                "# HELP process_{name} {help}\n# TYPE process_{name} {kind}\nprocess_{name} {value}"
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_proc_says_is_put_into_base_units() {
        let own = "7 (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 9 0 4200 1 2";
        let said = format_lines(own, "Name:\ta\nVmRSS:\t    2048 kB\n", "cpu 1 2\nbtime 1000\n", Some(5));
        let values: Vec<&str> = said.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            values,
            [
                "process_cpu_seconds_total 2",
                "process_open_fds 5",
                "process_resident_memory_bytes 2097152",
                "process_start_time_seconds 1042"
            ]
        );
    }

    #[test]
    fn what_is_not_known_is_not_said() {
        assert_eq!(format_lines("", "", "", None), "");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_knows_itself() {
        assert_eq!(process_text().lines().filter(|line| !line.starts_with('#')).count(), 4);
    }
}
